//===- PlanMeasures.h - Memory and traffic of a plan ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PLANMEASURES_H
#define FSDP_ANALYSIS_PLANMEASURES_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Number of values of Category.
inline constexpr unsigned numCategories = getMaxEnumValForCategory() + 1;

/// Memory in bytes by category. Each number is the peak of one category, so that the sum of all
/// categories may exceed `peak`.
struct MemoryReport {
  /// Peak bytes, indexed by Category.
  int64_t bytes[numCategories] = {};
  /// Size of the arena, its lower bound (the peak of the bytes alive), and padding between and
  /// after parameters.
  int64_t peak = 0, lowerBound = 0, padding = 0;
  /// Size of the arena in host memory, and peak of its live bytes by category.
  int64_t host = 0, hostBytes[numCategories] = {};
  /// Size of the file of a rank that holds offloaded state.
  int64_t file = 0;
  /// Bytes that a single rank would hold without sharding and padding.
  int64_t unshardedParameters = 0, unshardedGradients = 0, unshardedOptimizer = 0;
  int64_t getUnshardedOwned() const {
    return unshardedParameters + unshardedGradients + unshardedOptimizer;
  }
  /// Live bytes by category at the command with the most live bytes.
  int64_t atPeak[numCategories] = {};
  /// Arena of the unsharded reference, which computes all micro-batches of the step on one rank; 0
  /// without a reference.
  int64_t unshardedPeak = 0;
  /// The command with the most live bytes, its number in its program, the live bytes, and the live
  /// buffers, largest first.
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

/// Collectives of a step that have the kind, axis, type and purpose in common.
struct CommunicationReport {
  CollectiveKind kind;
  std::string axis;
  Type dtype;
  /// True for control scalars of the step, false for data of units.
  bool control;
  /// Payload in bytes with padding, bytes that one rank sends, and number of collectives.
  int64_t bytes = 0, wireBytes = 0, count = 0;
};

/// Parameters of a unit, and the bytes that they take.
struct UnitReport {
  UnitOp unit;
  int64_t elements = 0, trained = 0;
  /// Bytes on one rank: its shard of the parameters, its shard of the optimizer state, and the
  /// gathered parameters.
  int64_t shardBytes = 0, optimizerBytes = 0, gatheredBytes = 0;
  /// Padding between and after parameters, in bytes, summed over all shards.
  int64_t paddingBytes = 0;
  /// Type in which the parameters are gathered (null if they are not gathered), and number of
  /// gathers in a step. `reshard` describes what happens to gathered parameters after the forward.
  Type gatherType;
  int64_t gathers = 0;
  std::string reshard;
  /// Gathered bytes that a rank keeps after the forward if the backward gathers among fewer ranks.
  int64_t keptBytes = 0;

  /// Returns true if this unit differs from `other` only in names.
  bool isLike(const UnitReport &other) const;
};

/// Returns a size as text with a binary unit, such as "3.5 MiB".
std::string formatSize(int64_t bytes);

/// Measures the layout of the program `step`.
MemoryReport measureMemory(ModuleOp planned);
/// Measures the units of the program `step`, in the order of the module.
SmallVector<UnitReport> measureUnits(ModuleOp planned);
/// Measures the collectives of the program `step`.
SmallVector<CommunicationReport> measureCommunication(ModuleOp planned);

/// Cost of one value of an option, for a comparison of alternative plans.
struct ChoiceReport {
  std::string option; ///< option and value as on the command line
  bool isTaken;
  int64_t arenaBytes = 0;
  /// Payload in bytes per step of gathers and of reductions, without scalars.
  int64_t gatheredBytes = 0, reducedBytes = 0;
};
ChoiceReport measureChoice(ModuleOp planned, StringRef option, bool isTaken);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PLANMEASURES_H
