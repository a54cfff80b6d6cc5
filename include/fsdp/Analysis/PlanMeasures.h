//===- PlanMeasures.h - Memory and traffic of a plan ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PLANMEASURES_H
#define FSDP_ANALYSIS_PLANMEASURES_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Memory by category. Each number is the most bytes alive at one moment, so they add up to more
/// than `peak`.
struct MemoryReport {
  /// Indexed by Category.
  int64_t bytes[9] = {};
  /// The arena; the most that is alive at once, which no packing beats; zeros after and between
  /// parameters.
  int64_t peak = 0, lowerBound = 0, padding = 0;
  /// The host's arena, beside it; by category, as `bytes` are.
  int64_t host = 0, hostBytes[9] = {};
  /// The file of a rank.
  int64_t file = 0;
  /// One rank that holds everything, without padding.
  int64_t unshardedParameters = 0, unshardedGradients = 0, unshardedOptimizer = 0;
  int64_t getUnshardedOwned() const {
    return unshardedParameters + unshardedGradients + unshardedOptimizer;
  }
  /// Where most is alive: a command, its number and its program, how much, and the buffers, largest
  /// first. By category: what is alive there.
  int64_t atPeak[9] = {};
  /// The arena of the unsharded reference, which computes all micro-batches of the step on one
  /// rank; 0: there is none.
  int64_t unshardedPeak = 0;
  Operation *peakCommand = nullptr;
  int64_t peakNumber = 0, peakBytes = 0;
  SmallVector<BufferOp> peakBuffers;

  int64_t getAtPeak(Category category) const { return atPeak[static_cast<unsigned>(category)]; }
  /// Parameters, gradients and optimizer state.
  int64_t getOwnedAtPeak() const {
    return getAtPeak(Category::parameters) + getAtPeak(Category::gradients) +
           getAtPeak(Category::optimizer);
  }
  int64_t operator[](Category category) const { return bytes[static_cast<unsigned>(category)]; }
};

/// Collectives of one kind in a step.
struct CommunicationReport {
  CollectiveKind kind;
  std::string axis;
  Type dtype;
  /// Of scalars that steer the step, not of units.
  bool control;
  /// Payload with padding; what a rank sends of it; how many.
  int64_t bytes = 0, wireBytes = 0, count = 0;
};

/// A unit: what it holds, and what of it is where.
struct UnitReport {
  UnitOp unit;
  int64_t elements = 0, trained = 0;
  /// Of one rank: its part of the parameters and of the optimizer's state; all parameters while
  /// they are gathered.
  int64_t shardBytes = 0, optimizerBytes = 0, gatheredBytes = 0;
  /// Zeros after and between parameters, in all shards together.
  int64_t paddingBytes = 0;
  /// The type in which they are gathered, if they are; how often in a step; what happens after the
  /// forward.
  Type gatherType;
  int64_t gathers = 0;
  std::string reshard;
  /// Of what was gathered, kept until the backward gathers it again among fewer ranks.
  int64_t keptBytes = 0;

  /// Nothing but the names tells them apart.
  bool isLike(const UnitReport &other) const;
};

/// "3.5 MiB".
std::string formatSize(int64_t bytes);

/// Of the layout of `step`.
MemoryReport measureMemory(ModuleOp planned);
/// Of the units of `step`, in their order.
SmallVector<UnitReport> measureUnits(ModuleOp planned);
/// Of the program `step`.
SmallVector<CommunicationReport> measureCommunication(ModuleOp planned);

/// What a choice costs that the plan could make otherwise.
struct ChoiceReport {
  std::string option; ///< as one gives it
  bool isTaken;
  int64_t arenaBytes = 0;
  /// Payload of what crosses ranks in a step, without scalars: gathered, reduced.
  int64_t gatheredBytes = 0, reducedBytes = 0;
};
ChoiceReport measureChoice(ModuleOp planned, StringRef option, bool isTaken);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PLANMEASURES_H
