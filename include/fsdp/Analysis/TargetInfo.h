//===- TargetInfo.h - Properties of a target for all stages -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels are compiled last, but earlier stages depend on the capabilities of the target. This
// interface reports these capabilities. Codegen registers an implementation for each target.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TARGETINFO_H
#define FSDP_ANALYSIS_TARGETINFO_H

#include "fsdp/Options/Options.h"
#include <memory>

namespace mlir {
class Operation;
namespace fsdp {

/// Limits on intermediate results that can be computed a few rows at a time.
struct ChunkLimits {
  int64_t maxBytes; ///< largest size of a chunk in bytes; 0 for no limit
  int64_t minRows;  ///< least rows of a chunk, even if it then exceeds `maxBytes`
};

/// Properties of a target. The default implementations describe a CPU.
class TargetInfo {
public:
  virtual ~TargetInfo() = default;

  /// Returns the chunk limits. The default of 32 MiB is close to the size of a core's cache; 16
  /// rows allow the kernel of a contraction to reuse its operands.
  virtual ChunkLimits getChunkLimits() const { return {32 << 20, 16}; }
  /// Returns the alignment in bytes that rows of the operands of a matrix product need; 0 for none.
  virtual int64_t getRowAlignment() const { return 0; }
  /// Returns true if the host can run the kernels, so that updates of offloaded state run there.
  virtual bool hostComputes() const { return true; }
  /// Returns the name of the default cluster for estimates of time; an empty name for CPU ranks.
  virtual llvm::StringRef getClusterName() const { return ""; }
  /// Returns the reason why the target has no kernel for an attention op or its gradient op.
  /// Returns nothing if there is a kernel.
  virtual std::optional<std::string> whyNoAttention(Operation *) const { return std::nullopt; }
};

/// Registers a target. `create` returns its TargetInfo, or null if the options name another target.
/// `names` lists the names of the target for messages: "sm_80, sm_90a or sm_100a".
void registerTarget(std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &),
                    llvm::StringRef names);

/// Returns the target that the options name, or null if it is not registered.
std::shared_ptr<const TargetInfo> getTargetInfo(const CodegenOptions &options);

/// Returns the error "--target=NAME: expected ..." if that target is not registered, or nothing.
std::optional<std::string> findUnknownTarget(const StepOptions &options);

/// Returns the cluster for estimated times: the value of --cluster, or else the target's default.
std::string chooseCluster(const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_ANALYSIS_TARGETINFO_H
