//===- ProfileTable.h - The profile of a run as a table ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For --profile.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_PROFILETABLE_H
#define FSDP_RUN_PROFILETABLE_H

#include "PeakRates.h"
#include "Printer.h"
#include "fsdprt/fsdprt.h"
#include <string>

namespace fsdprt {

/// Prints the profile of `session`, which covers `steps` steps: by kind, then by kernel. `peak` is
/// one rank's. Peaks of 0: not known, and no floors. The same numbers also go to a file as JSON,
/// unless its path is empty.
void printProfile(const fsdprt_session *session, uint64_t steps, const PeakRates &peak,
                  const std::string &file, Printer &printer);

} // namespace fsdprt

#endif // FSDP_RUN_PROFILETABLE_H
