//===- Simulate.h - A simulated step on a described cluster -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --simulate: simulates a step, prints a table and, with --trace, writes a trace.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_SIMULATE_H
#define FSDP_RUN_SIMULATE_H

#include "Options.h"
#include "Printer.h"
#include "fsdprt/fsdprt.h"

namespace fsdprt {

void simulate(const Options &options, const fsdprt_artifact *artifact, Printer &printer);

} // namespace fsdprt

#endif // FSDP_RUN_SIMULATE_H
