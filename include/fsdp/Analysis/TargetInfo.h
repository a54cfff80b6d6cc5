//===- TargetInfo.h - Properties of a target for all stages -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Codegen is a late stage, but earlier stages depend on the capabilities of the target. They query
// these capabilities through this interface. Codegen registers an implementation for each target.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TARGETINFO_H
#define FSDP_ANALYSIS_TARGETINFO_H

#include "fsdp/Options/Options.h"
#include <memory>

namespace mlir {
class Operation;
namespace fsdp {

/// Limits on the size of a chunk, for an intermediate result that is computed one chunk of rows at
/// a time.
struct ChunkLimits {
  int64_t maxBytes; ///< largest size of a chunk in bytes; 0 for no limit
  int64_t minRows;  ///< least number of rows of a chunk; has precedence over `maxBytes`
};

/// Properties of a target. The default implementations describe a CPU.
class TargetInfo {
public:
  virtual ~TargetInfo() = default;

  /// Returns the limits on chunks. The default of 32 MiB is close to the cache size of a core. If a
  /// chunk has at least 16 rows, the kernel of a contraction can use each element of an operand
  /// several times after one load.
  virtual ChunkLimits getChunkLimits() const { return {32 << 20, 16}; }
  /// Returns the alignment in bytes that a matrix product requires for rows of its operands, or 0.
  virtual int64_t getRowAlignment() const { return 0; }
  /// Returns true if the host can run the kernels. If it returns true, updates of offloaded state
  /// run on the host.
  virtual bool hostComputes() const { return true; }
  /// Returns the name of the default cluster for time estimates. An empty name stands for
  /// getCpuCluster().
  virtual llvm::StringRef getClusterName() const { return ""; }
  /// Returns the reason why the target has no kernel for an attention op or its gradient op.
  /// Returns nothing if there is a kernel.
  virtual std::optional<std::string> whyNoAttention(Operation *) const { return std::nullopt; }
};

/// Registers a target. `create` returns its TargetInfo, or null if the options name another target.
/// `names` lists its values of --target for messages, such as "sm_80, sm_90a or sm_100a".
void registerTarget(std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &),
                    llvm::StringRef names);

/// Returns the properties of the target that `options` name, or null if this target is not
/// registered.
std::shared_ptr<const TargetInfo> getTargetInfo(const CodegenOptions &options);

/// Returns the error "--target=NAME: expected ..." if no target has this name, or nothing.
std::optional<std::string> findUnknownTarget(const StepOptions &options);

/// Returns the cluster for estimated times: the value of --cluster, or else the target's default.
std::string chooseCluster(const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_ANALYSIS_TARGETINFO_H
