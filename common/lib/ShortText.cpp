//===- ShortText.cpp - Texts of files in messages ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdpcommon/ShortText.h"
#include <cstdint>

/// Returns the number of bytes of the character at the beginning of `text`, or 0 if these bytes are
/// not UTF-8. The text must not be empty. Refuses what the Unicode Standard, section 3.9, table 3-7
/// refuses: encodings that are longer than necessary, surrogates, and numbers above 0x10ffff.
/// Stores the number of the character in `number`.
static size_t decode(std::string_view text, uint32_t &number) {
  unsigned char first = text[0];
  size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 0 || first > 0xf4 || text.size() < size)
    return 0;
  number = size == 1 ? first : first & (0x7f >> size);
  for (char c : text.substr(1, size - 1)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      return 0;
    number = number << 6 | (c & 0x3f);
  }
  bool isSurrogate = number >= 0xd800 && number < 0xe000;
  bool isLong = (size == 3 && number < 0x800) || (size == 4 && number < 0x10000);
  return isSurrogate || isLong || number > 0x10ffff ? 0 : size;
}

/// Returns true if the character of `size` bytes and of this number can be printed. A size of 0
/// stands for a byte that is not part of a character.
static bool isPrinted(size_t size, uint32_t number) {
  // 0x80 to 0x9f are control characters, too: terminals treat 0x9b like the sequence ESC [.
  return size && number >= ' ' && (number < 0x7f || number >= 0xa0);
}

std::string fsdpcommon::printableMessage(std::string_view text) {
  std::string result;
  for (;;) {
    size_t end = text.find('\n');
    result += shortText(text.substr(0, end), std::string_view::npos);
    if (end == std::string_view::npos)
      return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

bool fsdpcommon::isPrintable(std::string_view text) {
  while (!text.empty()) {
    uint32_t number = 0;
    size_t size = decode(text, number);
    if (!isPrinted(size, number))
      return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string fsdpcommon::shortText(std::string_view text, size_t most) {
  std::string result;
  while (!text.empty()) {
    uint32_t number = 0;
    size_t size = decode(text, number);
    std::string_view shown = isPrinted(size, number) ? text.substr(0, size) : "?";
    if (shown.size() > most - result.size())
      return result + "...";
    result += shown;
    text.remove_prefix(size ? size : 1);
  }
  return result;
}
