//===- Source.cpp - Errors in a file of PTX ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds error messages, which begin with a location in the source.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Source.h"
#include <cstdarg>
#include <cstdio>

using namespace fsdprt;
using namespace fsdprt::emulate;

void Source::fail(Location at, const char *text, ...) const {
  char message[1024];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(message, sizeof message, text, arguments);
  va_end(arguments);
  throw Error(FSDPRT_BAD_INPUT,
              format("%s:%u:%u: error: %s", name.c_str(), at.line, at.column, message));
}
