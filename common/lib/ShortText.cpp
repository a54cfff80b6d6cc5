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

std::string fsdpcommon::shortText(std::string_view text, size_t most) {
  std::string result;
  while (!text.empty()) {
    uint32_t number = 0;
    size_t size = decode(text, number);
    // 0x80 to 0x9f are control characters, too: terminals treat 0x9b like the sequence ESC [.
    bool isPrinted = size && number >= ' ' && (number < 0x7f || number >= 0xa0);
    if (result.size() + (isPrinted ? size : 1) > most)
      return result + "...";
    result += isPrinted ? text.substr(0, size) : "?";
    text.remove_prefix(size ? size : 1);
  }
  return result;
}
