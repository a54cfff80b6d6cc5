//===- NullRun.h - A walk over all programs, without kernels ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What --device=null prints.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_NULLRUN_H
#define FSDP_RUN_NULLRUN_H

#include "Options.h"
#include "Printer.h"

namespace fsdprt {

/// Walks the programs and prints the result. Returns 0, or throws Error if faults were found.
int walk(const Options &options, Printer &printer);

} // namespace fsdprt

#endif // FSDP_RUN_NULLRUN_H
