//===- AlsoMesh.h - Artifacts for further meshes ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --also-mesh=shard=3,replicate=2,shard=2 compiles the model again for each mesh, with the other
// options of the command line, so that a run can resume on other numbers of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_ALSOMESH_H
#define FSDP_TOOLS_COMPILE_ALSOMESH_H

#include "CommandLine.h"

namespace mlir::fsdp {

/// Returns the meshes of --also-mesh, such as "shard=3" and "replicate=2,shard=2". Each ends with
/// its axis 'shard'. `problem` is set if the text has another form.
std::vector<std::string> splitMeshes(llvm::StringRef text, std::string &problem);

/// Returns the path of the artifact for `mesh`, beside the artifact of -o: gpt.fsdp and shard=3
/// give gpt.shard3.fsdp.
std::string getPathFor(llvm::StringRef output, llvm::StringRef mesh);

/// Returns an error about --also-mesh and its files, or nothing.
std::optional<std::string> checkAlsoMesh(const StepOptions &options);

/// Compiles the model for each mesh of --also-mesh. `compiled` has the options with which `line` is
/// already compiled. Keeps the number of micro-batches over all ranks, or warns if that is
/// impossible. Returns the exit code of the first failure, or 0.
int compileAlso(const CommandLine &line, const StepOptions &compiled,
                llvm::function_ref<int(const CommandLine &)> compile);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_ALSOMESH_H
