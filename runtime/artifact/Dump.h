//===- Dump.h - An artifact as text -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_DUMP_H
#define FSDPRT_ARTIFACT_DUMP_H

#include "artifact/Artifact.h"
#include <functional>

namespace fsdprt {

/// Passes the text to `write` in consecutive parts. Stops and returns false as soon as `write`
/// returns false.
bool dumpArtifact(const Artifact &artifact, const std::function<bool(const std::string &)> &write);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_DUMP_H
