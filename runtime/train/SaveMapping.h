//===- SaveMapping.h - States of an artifact in a save ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each state of an artifact, finds the ranges of a save from which this state is loaded. The
// save may have another mesh, strategy, wrapping or dtype of states, but must be of the same model:
//
//     state 'h.0/first_moment' here     | a.weight |pad| b.weight |pad|     1 piece
//     state 'model/first_moment' there  | z | a.weight |pad : b.weight |    pieces 0 and 1
//
// An element of a state that belongs to a parameter is loaded from the saved element that has the
// same parameter name, the same role of the state, and the same index in the parameter. Padding
// belongs to no parameter and is therefore not loaded.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEMAPPING_H
#define FSDPRT_TRAIN_SAVEMAPPING_H

#include "train/SaveIndex.h"
#include <map>
#include <set>
#include <tuple>

namespace fsdprt {

/// The elements [begin, end) of the flat buffer of a state. They are loaded from the saved state
/// with index `from`, beginning with element `fromBegin` of its flat buffer.
struct StateRange {
  uint64_t begin = 0, end = 0, from = 0, fromBegin = 0;
  std::string param; ///< name of the parameter; empty if the range is the whole state
};

class SaveMapping {
public:
  SaveMapping() = default;
  /// Finds the saved states from which the states of `wanted` are loaded. `wanted` is the layout of
  /// an artifact, and `saved` is the index of a save. `save` and `artifact` are names for messages.
  /// Throws Error if the save belongs to another model or to another optimizer, or if its index
  /// contradicts itself.
  SaveMapping(const SaveIndex &saved, const SaveIndex &wanted, const std::string &save,
              const std::string &artifact);

  /// Returns true if the save and the artifact have the same layout. In this case each rank loads
  /// its own pieces unchanged, including the padding.
  bool isSameLayout() const { return sameLayout; }
  const std::vector<StateRange> &rangesOf(uint64_t state) const { return ranges[state]; }
  /// Returns the indices of those files of the save from which elements [begin, end) of the flat
  /// buffer of `state` are loaded. `state` is a state of the artifact.
  std::set<uint64_t> filesOf(const SaveIndex &saved, uint64_t state, uint64_t begin,
                             uint64_t end) const;
  /// Returns the changes of dtypes of states, such as "first_moment rounded from F32 to BF16",
  /// separated by "; ". The result is empty if no dtype changes.
  std::string conversions() const;

private:
  class Matching;
  bool sameLayout = false;
  /// for each state: its ranges
  std::vector<std::vector<StateRange>> ranges;
  std::set<std::tuple<std::string, std::string, std::string>> changes; ///< from, to, role
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEMAPPING_H
