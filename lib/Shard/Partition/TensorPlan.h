//===- TensorPlan.h - Parameters that --tensor-parallel splits --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_SHARD_PARTITION_TENSORPLAN_H
#define FSDP_LIB_SHARD_PARTITION_TENSORPLAN_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

/// A word of a plan. With `Colwise`, the output features of a parameter are split. With `Rowwise`,
/// its input features are split. With `Replicate`, every rank has the whole parameter. With
/// `SequenceParallel` too, and the ops that read it compute rows of a rank.
enum class TensorWord { Colwise, Rowwise, Replicate, SequenceParallel };

/// Returns true if a parameter with this word stays whole.
inline bool keepsWhole(TensorWord word) { return word >= TensorWord::Replicate; }

/// Returns the keyword of a word.
StringRef nameOf(TensorWord word);

/// An entry of a plan.
struct TensorPlanEntry {
  Location loc;
  std::string pattern;
  TensorWord word;
  std::optional<int64_t> dim; ///< of a table, if the word is about tables
};

/// The plan of --tensor-parallel=FILE.
class TensorPlan {
public:
  /// Reads a JSON object of patterns and words. Emits errors at the place in the file.
  LogicalResult read(StringRef path, MLIRContext *context);

  /// Returns, for each of `names`, the first entry that matches it, or null. A pattern matches a
  /// name as with --freeze, also after a prefix such as "model.". Emits an error if an entry
  /// matches no name, or only names that earlier entries match.
  FailureOr<SmallVector<const TensorPlanEntry *>> match(ArrayRef<StringRef> names) const;

  /// Returns the place of the first entry.
  Location getBegin() const { return entries.front().loc; }

  /// Returns whether any entry of the plan has the word `word`.
  bool has(TensorWord word) const {
    return llvm::any_of(entries, [&](const TensorPlanEntry &entry) { return entry.word == word; });
  }

private:
  SmallVector<TensorPlanEntry> entries;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_SHARD_PARTITION_TENSORPLAN_H
