//===- AlsoMesh.h - Artifacts for further meshes ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// With --also-mesh=shard=3,replicate=2,shard=2, the model is compiled two more times: once for each
// of the two meshes, with the other options of the command line. A run can then resume with a
// different number of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_ALSOMESH_H
#define FSDP_TOOLS_COMPILE_ALSOMESH_H

#include "CommandLine.h"

namespace mlir::fsdp {

/// Splits the value of --also-mesh into meshes, for example "shard=3" and "replicate=2,shard=2".
/// Each mesh ends with the axis 'shard' or 'tensor'. If `text` is not a valid list of meshes, sets
/// `problem`.
std::vector<std::string> splitMeshes(llvm::StringRef text, std::string &problem);

/// Returns the path of the artifact for `mesh`, derived from the path of -o. For gpt.fsdp and
/// shard=3, the result is gpt.shard3.fsdp.
std::string getPathFor(llvm::StringRef output, llvm::StringRef mesh);

/// Returns an error if --also-mesh or the path of an artifact is not valid. Otherwise returns
/// nothing.
std::optional<std::string> checkAlsoMesh(const StepOptions &options);

/// Compiles the model for each mesh of --also-mesh. The model has already been compiled for --mesh,
/// with the options `compiled`. The total number of micro-batches over all ranks stays the same.
/// Prints a warning if this is not possible. Returns the exit code of the first failure, or 0 if
/// nothing fails.
int compileAlso(const CommandLine &line, const StepOptions &compiled,
                llvm::function_ref<int(const CommandLine &)> compile);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_ALSOMESH_H
