//===- Error.cpp - Errors and their messages --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions. See LICENSE for licence
// information. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "fsdpcommon/ShortText.h"
#include <cstdarg>
#include <cstdio>

using namespace fsdprt;

static std::string formatList(const char *text, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int size = std::vsnprintf(nullptr, 0, text, again);
  va_end(again);
  std::string result(size > 0 ? size : 0, '\0');
  std::vsnprintf(result.data(), result.size() + 1, text, arguments);
  return result;
}

std::string fsdprt::format(const char *text, ...) {
  va_list arguments;
  va_start(arguments, text);
  std::string result = formatList(text, arguments);
  va_end(arguments);
  return result;
}

void fsdprt::badInput(const char *text, ...) {
  va_list arguments;
  va_start(arguments, text);
  std::string message = formatList(text, arguments);
  va_end(arguments);
  throw Error(FSDPRT_BAD_INPUT, std::move(message));
}

void fsdprt::failed(const char *text, ...) {
  va_list arguments;
  va_start(arguments, text);
  std::string message = formatList(text, arguments);
  va_end(arguments);
  throw Error(FSDPRT_FAILED, std::move(message));
}

static std::string withSeparators(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;)
    digits.insert(at -= 3, ",");
  return digits;
}

std::string fsdprt::bytesText(uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return withSeparators(bytes) + " bytes";
  double value = bytes / 1024.0;
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit)
    value /= 1024;
  return format("%.1f %s (%s bytes)", value, units[unit], withSeparators(bytes).c_str());
}

std::string fsdprt::printable(std::string_view text) { return fsdpcommon::shortText(text, 120); }
