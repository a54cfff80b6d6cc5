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
// belongs to no parameter and is therefore not loaded. If the axis "tensor" splits the parameter,
// here or in the save, there is a range for each run of elements that are consecutive in both.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEMAPPING_H
#define FSDPRT_TRAIN_SAVEMAPPING_H

#include "core/SlicedShape.h"
#include "train/SaveIndex.h"
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace fsdprt {

/// The elements [begin, end) of the flat buffer of a state. They are loaded from the saved state
/// with index `from`, beginning with element `fromBegin` of its flat buffer.
struct StateRange {
  uint64_t begin = 0, end = 0, from = 0, fromBegin = 0;
  uint64_t index = 0;     ///< index of element `begin` in the parameter, or in the whole state
  std::string_view param; ///< name of the parameter; empty if the range is the whole state
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
  /// Calls each() for the ranges that consist of elements [begin, end) of the flat buffer of a
  /// state of the artifact.
  void forRanges(uint64_t state, uint64_t begin, uint64_t end,
                 const std::function<void(const StateRange &)> &each) const;
  /// Returns the indices of those files of the save from which elements [begin, end) of the flat
  /// buffer of `state` are loaded. `state` is a state of the artifact.
  std::set<uint64_t> filesOf(const SaveIndex &saved, uint64_t state, uint64_t begin,
                             uint64_t end) const;
  /// Returns the changes of dtypes of states, such as "first_moment rounded from F32 to BF16",
  /// separated by "; ". The result is empty if no dtype changes.
  std::string conversions() const;

private:
  class Matching;
  /// A parameter in the flat buffer of each slice of a unit.
  struct Slices {
    SlicedShape shape;
    uint64_t offset, sliceSize; ///< `sliceSize`: elements of the flat buffer of one slice
  };
  /// The part of a state that belongs to one parameter, here and in the saved state `from`.
  struct Part {
    Slices here, there;
    uint64_t from;
    std::string param;
  };
  bool sameLayout = false;
  std::vector<std::vector<Part>> parts; ///< for each state of the artifact
  std::set<std::tuple<std::string, std::string, std::string>> changes; ///< from, to, role
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEMAPPING_H
