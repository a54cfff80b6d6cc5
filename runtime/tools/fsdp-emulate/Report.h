//===- Report.h - What fsdp-emulate prints ----------------------*- C++ -*-===//
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
/// --print=INDEX[:COUNT]
void printArgument(const std::string &text, const std::vector<Argument> &arguments);
/// --save=INDEX:FILE
void saveArgument(const std::string &text, const std::vector<Argument> &arguments);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_REPORT_H
