//===- InputFile.cpp - Reading whole files ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "InputFile.h"
#include "emulator/ptx/Source.h"
#include "fsdpcommon/InputStream.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

std::string fsdprt::emulate::readFile(const std::string &path, uint64_t most,
                                      const std::string &where) {
  std::string text, why = fsdpcommon::readInput(path, most, text);
  if (!why.empty())
    badInput("%s%s: %s", where.c_str(), quoted(path).c_str(), why.c_str());
  return text;
}
