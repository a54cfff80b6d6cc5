//===- Package.h - Programs and code into one file --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PACKAGE_PACKAGE_H
#define FSDP_PACKAGE_PACKAGE_H

#include "fsdp/Analysis/GpuCode.h"
#include "fsdp/Analysis/KernelImage.h"
#include "mlir/IR/BuiltinOps.h"
#include <deque>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// What the runtime steers and reports; the arithmetic is in the kernels.
struct OptimizerInfo {
  std::string kind = "adamw";
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weightDecay = 0, momentum = 0, clipGradNorm = 0;
};

struct PackageOptions {
  /// Name and version of the compiler, the source file and the target, for people.
  std::string compiler, source, target;
  OptimizerInfo optimizer;
  /// Threads that run the kernels of a rank.
  unsigned threadsPerRank = 1;
  /// What the image holds when it is for a GPU.
  const GpuCode *gpu = nullptr;
};

/// Ranks of the largest mesh that the runtime accepts.
inline constexpr int64_t maxRuntimeRanks = 16384;

/// Refuses a module whose programs are for more ranks than an artifact can have.
LogicalResult verifyRanks(ModuleOp module);

/// Gives each layout of a planned module the scratch that its kernels need, behind all buffers;
/// sets the final size of the arena.
void addWorkspace(ModuleOp module, const Image &image, unsigned workers);

/// A file as pieces, one behind the other. Those behind the first belong to the module whose values
/// they are, or to `unpacked`.
struct ArtifactPieces {
  std::vector<char> head;
  std::vector<ArrayRef<char>> values;
  std::deque<std::vector<char>> unpacked;
};

/// The bytes of the .fsdp file of a planned module with workspace: see
/// common/include/fsdprt/artifact_header.h. The same module and image give the same bytes.
FailureOr<ArtifactPieces> buildArtifact(ModuleOp module, const Image &image,
                                        const PackageOptions &options);

/// Writes a file in one go: to a temporary file beside it, which then takes its name. On an error
/// nothing is left behind; what stood at `path` stays. A path that is no regular file (/dev/stdout)
/// is written to; - is stdout.
LogicalResult writeFile(StringRef path, ArrayRef<char> bytes, Location loc);
LogicalResult writeFile(StringRef path, const ArtifactPieces &pieces, Location loc);

/// All of the above.
LogicalResult packArtifact(ModuleOp module, const Image &image, const PackageOptions &options,
                           StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_PACKAGE_PACKAGE_H
