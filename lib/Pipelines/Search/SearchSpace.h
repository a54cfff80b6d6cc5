//===- SearchSpace.h - Candidates of --search -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_SEARCHSPACE_H
#define FSDP_PIPELINES_SEARCH_SEARCHSPACE_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/Options/OptionTable.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// A combination of options that the search compares with others.
struct Candidate {
  /// The options of the command line with those that the search has set.
  StepOptions options;
  /// Options as the command line spells them, without those that have their default value.
  std::vector<std::string> spelled;
  /// Those options of `spelled` that the search has set and only the stage Plan reads.
  std::string ofPlan;
  /// Candidates of a group differ only in options that no stage before Plan reads.
  unsigned group = 0;
};

/// Returns the candidates for `options.driver.search` ranks, sorted by group. `imported` is the
/// module after the phase import. The search does not set an option that the user has set, except
/// --grad-accum: a step of each candidate has as many micro-batches over all ranks as the step that
/// `options` describe on the axis `shard`.
std::vector<Candidate> listCandidates(ModuleOp imported, const StepOptions &options,
                                      const Cluster &cluster);

/// Numbers of ranks of the axes of --mesh. Those of `shard` include those of `context`.
struct MeshRanks {
  int64_t shard = 1, replicate = 1, context = 1, tensor = 1;

  /// Returns into how many pieces a strategy splits a tensor on its first `axes` axes.
  int64_t countPieces(int axes) const {
    return (axes > 0 ? shard : 1) * (axes > 1 ? replicate : 1);
  }
};
/// Returns the ranks of a mesh that is valid.
MeshRanks getMeshRanks(const StepOptions &options);

/// How a plan splits activations. The members are set only if their axis has several ranks.
struct ActivationSplit {
  int64_t context = 1, tensor = 1; ///< ranks of the axes
  bool ring = false;               ///< whether keys and values travel from rank to rank
  bool rows = false;               ///< whether norms and residuals are split over `tensor`, too

  bool operator==(const ActivationSplit &other) const {
    return hasRanksOf(other) && ring == other.ring && rows == other.rows;
  }
  bool hasRanksOf(const ActivationSplit &other) const {
    return context == other.context && tensor == other.tensor;
  }
  /// Returns whether both axes of `other` have a multiple of the ranks.
  bool dividesRanksOf(const ActivationSplit &other) const {
    return other.context % context == 0 && other.tensor % tensor == 0;
  }
  /// Returns whether `other` splits all that this one splits in addition to plain axes.
  bool addsAtMost(const ActivationSplit &other) const {
    return ring <= other.ring && rows <= other.rows;
  }
};
ActivationSplit getActivationSplit(const StepOptions &options);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_SEARCHSPACE_H
