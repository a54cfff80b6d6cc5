//===- NumberText.cpp - Readable numbers ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/NumberText.h"
#include <cstdio>

using namespace fsdprt;

const char *fsdprt::shortBytes(uint64_t bytes, char (&text)[32]) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

const char *fsdprt::grouped(uint64_t number, char (&text)[32]) {
  char digits[24];
  int size = std::snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  int used = 0;
  for (int i = 0; i < size; ++i) {
    if (i > 0 && (size - i) % 3 == 0)
      text[used++] = ',';
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}
