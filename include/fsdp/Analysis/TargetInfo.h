//===- TargetInfo.h - What stages ask about a target ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels are compiled last, but what a target can do decides what earlier stages make. They ask
// this interface; Codegen registers an implementation for each of its targets.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TARGETINFO_H
#define FSDP_ANALYSIS_TARGETINFO_H

#include "fsdp/Options/Options.h"
#include <memory>

namespace mlir {
class Operation;
namespace fsdp {

/// Of intermediate results that can be computed a few rows at a time.
struct ChunkLimits {
  int64_t maxBytes; ///< 0: no limit
  int64_t minRows;  ///< also where these are more bytes
};

/// A target, with the answers of a CPU.
class TargetInfo {
public:
  virtual ~TargetInfo() = default;

  /// Returns what a core's cache nearly holds; with 16 rows a contraction's kernel has something to
  /// reuse.
  virtual ChunkLimits getChunkLimits() const { return {32 << 20, 16}; }
  /// Returns the bytes at whose multiples rows of factors begin; 0: any.
  virtual int64_t getRowAlignment() const { return 0; }
  /// Returns whether the host computes with the same kernels, so that updates of offloaded state
  /// run there.
  virtual bool hostComputes() const { return true; }
  /// Returns the cluster that times are estimated for where none is given; empty: CPU ranks.
  virtual llvm::StringRef getClusterName() const { return ""; }
  /// Returns why there is no kernel for this attention, or for these gradients of one; nothing
  /// where there is.
  virtual std::optional<std::string> whyNoAttention(Operation *) const { return std::nullopt; }
};

/// Makes a target known. `create` returns its TargetInfo, or null where the options name another
/// one; `names` are for messages: "sm_80, sm_90a or sm_100a".
void registerTarget(std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &),
                    llvm::StringRef names);

/// Returns the target that the options name, which findUnknownTarget knows.
std::shared_ptr<const TargetInfo> getTargetInfo(const CodegenOptions &options);

/// Returns "--target=NAME: expected ..." where no such target is registered.
std::optional<std::string> findUnknownTarget(const StepOptions &options);

/// Returns the cluster that times are estimated for: the one that is given, or the target's.
std::string chooseCluster(const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_ANALYSIS_TARGETINFO_H
