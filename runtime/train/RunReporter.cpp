//===- RunReporter.cpp - Output of a run for its user -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/RunReporter.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>

using namespace fsdprt;

void RunReporter::line(const char *text, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, text);
  int size = std::vsnprintf(buffer, sizeof buffer - 1, text, arguments);
  va_end(arguments);
  size_t used = std::min<size_t>(std::max(size, 0), sizeof buffer - 2);
  buffer[used++] = '\n';
  write(buffer, used);
}

void RunReporter::warning(const char *text, ...) {
  char buffer[2048];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  writeWarning(buffer);
}
