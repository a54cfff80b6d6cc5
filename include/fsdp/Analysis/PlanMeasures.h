//===- PlanMeasures.h - Memory and traffic of a plan ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PLANMEASURES_H
#define FSDP_ANALYSIS_PLANMEASURES_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Number of cases of the enum Category.
inline constexpr unsigned numCategories = getMaxEnumValForCategory() + 1;

/// Memory in bytes. Different categories can reach their peaks at different commands. The sum of
/// `bytes` over all categories may therefore exceed the size of the arena (`peak`).
struct MemoryReport {
  /// Peak of the live bytes of each category.
  int64_t bytes[numCategories] = {};
  /// `peak` is the size of the arena. `lowerBound` is the peak of the live bytes, which is a lower
  /// bound of the size of the arena. `padding` is the number of bytes of padding between and after
  /// parameters.
  int64_t peak = 0, lowerBound = 0, padding = 0;
  /// Size of the arena in host memory, and the peak of the live host bytes of each category.
  int64_t host = 0, hostBytes[numCategories] = {};
  /// Size of the file in which a rank keeps offloaded state.
  int64_t file = 0;
  /// Bytes that each rank would hold without sharding and without padding.
  int64_t unshardedParameters = 0, unshardedGradients = 0, unshardedOptimizer = 0;
  int64_t getUnshardedOwned() const {
    return unshardedParameters + unshardedGradients + unshardedOptimizer;
  }
  /// Live bytes of each category at `peakCommand`.
  int64_t atPeak[numCategories] = {};
  /// Size of the arena of the unsharded reference, which computes all micro-batches of the step on
  /// one rank. The size is 0 if the module contains no reference program.
  int64_t unshardedPeak = 0;
  /// `peakCommand` is the command at which the most bytes are live, and `peakNumber` is its number.
  /// `peakBytes` is the number of live bytes at this command. `peakBuffers` lists the live buffers,
  /// largest first.
  Operation *peakCommand = nullptr;
  int64_t peakNumber = 0, peakBytes = 0;
  SmallVector<BufferOp> peakBuffers;

  int64_t getAtPeak(Category category) const { return atPeak[static_cast<unsigned>(category)]; }
  /// Returns the live bytes of parameters, gradients and optimizer state at `peakCommand`.
  int64_t getOwnedAtPeak() const {
    return getAtPeak(Category::parameters) + getAtPeak(Category::gradients) +
           getAtPeak(Category::optimizer);
  }
  int64_t operator[](Category category) const { return bytes[static_cast<unsigned>(category)]; }
};

/// Describes all collectives of a step that have the same kind, axis, element type and value of
/// `control`.
struct CommunicationReport {
  CollectiveKind kind;
  std::string axis;
  Type dtype;
  /// True for collectives on scalars such as the loss, false for collectives on parameters or
  /// gradients of units.
  bool control;
  /// `bytes` is the payload in bytes, including padding. `wireBytes` is the number of bytes that
  /// one rank sends. `count` is the number of collectives.
  int64_t bytes = 0, wireBytes = 0, count = 0;
};

/// Sizes of the parameters of a unit.
struct UnitReport {
  UnitOp unit;
  int64_t elements = 0, trained = 0;
  /// Bytes that one rank needs for its shard of the parameters, for its shard of the optimizer
  /// state, and for the gathered parameters.
  int64_t shardBytes = 0, optimizerBytes = 0, gatheredBytes = 0;
  /// Bytes of padding between and after parameters, summed over all shards.
  int64_t paddingBytes = 0;
  /// Element type of the gathered parameters, or null if the parameters are not gathered. `gathers`
  /// is the number of gathers in a step. `reshard` describes what happens to gathered parameters
  /// after the forward.
  Type gatherType;
  int64_t gathers = 0;
  std::string reshard;
  /// Bytes of the gathered parameters that a rank keeps between forward and backward. The number is
  /// 0 unless the backward gathers among fewer ranks than the forward.
  int64_t keptBytes = 0;

  /// Returns true if the units `*this` and `other` differ only in names.
  bool isLike(const UnitReport &other) const;
};

/// Returns a size as text with a binary unit, such as "3.5 MiB".
std::string formatSize(int64_t bytes);

/// Measure the memory, the units (in their order in the module) and the collectives of the program
/// `step`.
MemoryReport measureMemory(ModuleOp planned);
SmallVector<UnitReport> measureUnits(ModuleOp planned);
SmallVector<CommunicationReport> measureCommunication(ModuleOp planned);

/// Memory and communication of the plan that results from one value of an option.
struct ChoiceReport {
  std::string option; ///< the option and its value, as written on the command line
  bool isTaken;
  int64_t arenaBytes = 0;
  /// Payload in bytes of all gathers in a step, and payload of all reductions in a step.
  /// Collectives on scalars do not count.
  int64_t gatheredBytes = 0, reducedBytes = 0;
};
ChoiceReport measureChoice(ModuleOp planned, StringRef option, bool isTaken);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PLANMEASURES_H
