//===- SaveMapping.h - States of an artifact in a save ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds, for each state of an artifact, the ranges of a save from which it is loaded. The save may
// be of another mesh, strategy, wrapping or storage of the same model:
//
//     state 'h.0/first_moment' here     | a.weight |pad| b.weight |pad|     1 piece
//     state 'model/first_moment' there  | z | a.weight |pad : b.weight |    pieces 0 and 1
//
// Elements are matched by parameter name, role and index, so that padding is never read.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEMAPPING_H
#define FSDPRT_TRAIN_SAVEMAPPING_H

#include "train/SaveIndex.h"
#include <map>
#include <set>
#include <tuple>

namespace fsdprt {

/// Elements [begin, end) of a state's flat buffer, which are loaded from as many elements of the
/// save's state `from`, beginning at `fromBegin` of its flat buffer.
struct StateRange {
  uint64_t begin = 0, end = 0, from = 0, fromBegin = 0;
  std::string param; ///< name of the parameter; empty if the range is the whole state
};

class SaveMapping {
public:
  SaveMapping() = default;
  /// Maps the states of `wanted`, the layout of an artifact, to those of `saved`. `save` and
  /// `artifact` name them in messages. Throws Error if the save is not of the same model and
  /// optimizer, or if its index contradicts itself.
  SaveMapping(const SaveIndex &saved, const SaveIndex &wanted, const std::string &save,
              const std::string &artifact);

  /// Returns true if both layouts are equal: every rank then loads its own pieces, with padding.
  bool isSameLayout() const { return sameLayout; }
  const std::vector<StateRange> &rangesOf(uint64_t state) const { return ranges[state]; }
  /// Returns the numbers of the files that have elements [begin, end) of a state of the artifact.
  std::set<uint64_t> filesOf(const SaveIndex &saved, uint64_t state, uint64_t begin,
                             uint64_t end) const;
  /// Returns how the dtypes of states change, such as "first_moment is rounded from F32 to BF16",
  /// joined by "; ". Empty if no dtype changes.
  std::string conversions() const;

private:
  class Matching;
  bool sameLayout = false;
  std::vector<std::vector<StateRange>> ranges;                         ///< by state of the artifact
  std::set<std::tuple<std::string, std::string, std::string>> changes; ///< from, to, role
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEMAPPING_H
