//===- Report.h - Output of fsdp-emulate ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_REPORT_H
#define FSDP_EMULATE_REPORT_H

#include "Arguments.h"
#include "Options.h"

namespace fsdprt::emulate {

void printList(Emulator &emulator);
void printCounters(const Counters &counters);

/// A parsed option --print. printArgument() prints the first `count` elements of `argument`.
struct Print {
  Argument argument;
  uint64_t count;
};
/// Parses `text`, which must be "INDEX" or "INDEX:COUNT". Throws Error if `text` is invalid.
Print parsePrint(const std::string &text, const std::vector<Argument> &arguments);
void printArgument(const Print &print);

/// A parsed option --save. saveArgument() writes the memory of `argument` to the file `path`.
struct Save {
  Argument argument;
  std::string path;
};
/// Parses `text`, which must be "INDEX:FILE". Throws Error if `text` is invalid.
Save parseSave(const std::string &text, const std::vector<Argument> &arguments);
void saveArgument(const Save &save);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_REPORT_H
