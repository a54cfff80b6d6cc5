//===- Weights.h - Parameters from and to files -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between safetensors files and a session.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_WEIGHTS_H
#define FSDP_RUN_WEIGHTS_H

#include "Printer.h"
#include "fsdprt/fsdprt.h"
#include <string>

namespace fsdprt {

/// Sets every parameter, in the ranks and the reference, from a .safetensors file or the .index.json
/// of several; returns how many. Throws Error before the first is set when names or shapes do not match.
uint64_t importWeights(const std::string &path, const fsdprt_artifact *artifact, fsdprt_session *session,
                       Printer &printer);

/// Writes all parameters, from their masters where there are any.
void exportWeights(const std::string &path, const fsdprt_artifact *artifact, const fsdprt_session *session);

} // namespace fsdprt

#endif // FSDP_RUN_WEIGHTS_H
