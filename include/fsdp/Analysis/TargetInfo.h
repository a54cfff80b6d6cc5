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

/// Some intermediate results are computed one chunk of rows after another. This structure limits
/// the size of a chunk.
struct ChunkLimits {
  int64_t maxBytes; ///< largest size of a chunk in bytes; 0 for no limit
  int64_t minRows;  ///< least number of rows of a chunk; has precedence over `maxBytes`
};

/// Matrix products are fastest if the rows of their operands have this alignment.
struct RowAlignment {
  int64_t bytes; ///< the bytes of a row are a multiple of this number; 0 for no alignment
  bool copies;   ///< true if it saves time to copy an operand that is not aligned
};

/// Properties of a target. The default implementations describe a CPU.
class TargetInfo {
public:
  virtual ~TargetInfo() = default;

  /// Returns the limits on chunks. The default of 32 MiB is close to the cache size of a core. If a
  /// chunk has at least 16 rows, the kernel of a contraction can use each element of an operand
  /// several times after one load.
  virtual ChunkLimits getChunkLimits() const { return {32 << 20, 16}; }
  /// Returns the best alignment of rows in the operands of matrix products.
  virtual RowAlignment getRowAlignment() const { return {0, false}; }
  /// Returns an alignment in bytes. If heads and rows inside a larger tensor begin at multiples of
  /// it, attention kernels can read and write them there.
  virtual int64_t getHeadAlignment() const { return 1; }
  /// Returns the storage that --param-storage=auto stands for if memory is not limited.
  virtual ParamStorage getParamStorage() const { return ParamStorage::Master; }
  /// Returns true if the kernel of a dispatch, which has one contraction, can also compute the
  /// dispatch's sums of a factor over all values of k.
  virtual bool sumsFactors(Operation *) const { return false; }
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

/// Registers a target. `create` returns the properties of this target, or null if the options name
/// another target. `names` is the part of error messages that lists the values of --target for this
/// target, such as "sm_80, sm_90a or sm_100a".
void registerTarget(std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &),
                    llvm::StringRef names);

/// Returns the properties of the target that `options` name, or null if this target is not
/// registered.
std::shared_ptr<const TargetInfo> getTargetInfo(const CodegenOptions &options);

/// Returns the error "--target=NAME: expected ..." if no registered target accepts the name NAME.
/// Returns nothing otherwise.
std::optional<std::string> findUnknownTarget(const StepOptions &options);

/// Returns the name or path of the cluster for which times are estimated. This is the value of
/// --cluster or, if that value is empty, the default cluster of the target.
std::string chooseCluster(const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_ANALYSIS_TARGETINFO_H
