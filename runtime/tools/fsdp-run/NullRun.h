//===- NullRun.h - A walk over all programs, without kernels ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --device=null: walks all programs on the null device and prints the result.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_NULLRUN_H
#define FSDP_RUN_NULLRUN_H

#include "Options.h"
#include "Printer.h"

namespace fsdprt {

/// Walks the programs of the artifact and returns 0. Throws Error if faults were found.
int walk(const Options &options, Printer &printer);

} // namespace fsdprt

#endif // FSDP_RUN_NULLRUN_H
