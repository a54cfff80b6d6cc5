//===- SaveMapping.h - States of an artifact in a save ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds, for each state of an artifact, the ranges of a save from which the state is loaded. The
// save may have another mesh, strategy, wrapping or dtype of states, but must be of the same model:
//
//     state 'h.0/first_moment' here     | a.weight |pad| b.weight |pad|     1 piece
//     state 'model/first_moment' there  | z | a.weight |pad : b.weight |    pieces 0 and 1
//
// An element of a state is loaded from the element with the same parameter name, role of the state,
// and index in the parameter. Padding is therefore not loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEMAPPING_H
#define FSDPRT_TRAIN_SAVEMAPPING_H

#include "train/SaveIndex.h"
#include <map>
#include <set>
#include <tuple>

namespace fsdprt {

/// Elements [begin, end) of a state's flat buffer. The elements are loaded from the flat buffer of
/// state `from` of the save, beginning with element `fromBegin` of that buffer.
struct StateRange {
  uint64_t begin = 0, end = 0, from = 0, fromBegin = 0;
  std::string param; ///< name of the parameter; empty if the range is the whole state
};

class SaveMapping {
public:
  SaveMapping() = default;
  /// Maps the states of `wanted`, the layout of an artifact, to the states of `saved`. Messages
  /// contain the names `save` and `artifact`. Throws Error if the save is of another model or
  /// optimizer, or if its index contradicts itself.
  SaveMapping(const SaveIndex &saved, const SaveIndex &wanted, const std::string &save,
              const std::string &artifact);

  /// Returns true if both layouts are equal. Each rank then loads its own pieces, including the
  /// padding.
  bool isSameLayout() const { return sameLayout; }
  const std::vector<StateRange> &rangesOf(uint64_t state) const { return ranges[state]; }
  /// Returns the indices of those files of the save from which elements [begin, end) of the flat
  /// buffer of a state of the artifact are loaded.
  std::set<uint64_t> filesOf(const SaveIndex &saved, uint64_t state, uint64_t begin,
                             uint64_t end) const;
  /// Returns the changes of dtypes of states, such as "first_moment rounded from F32 to BF16",
  /// separated by "; ". The result is empty if no dtype changes.
  std::string conversions() const;

private:
  class Matching;
  bool sameLayout = false;
  std::vector<std::vector<StateRange>> ranges;                         ///< ranges of each state
  std::set<std::tuple<std::string, std::string, std::string>> changes; ///< from, to, role
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEMAPPING_H
