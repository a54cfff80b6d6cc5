//===- RankSave.h - The file of a rank in a save ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file of a rank contains the step block of this rank. For each state, it also contains the
// piece of this rank. The file does not contain a piece that a lower rank also has.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RANKSAVE_H
#define FSDPRT_TRAIN_RANKSAVE_H

#include "train/BackgroundTask.h"
#include "train/SaveIndex.h"
#include <array>
#include <map>

namespace fsdprt {

/// In the file of a rank, the tensor with this name contains the step block of the rank.
inline constexpr const char saveBlockName[] = "step_block";

/// Returns an entry for each state that has a piece in the file of `rank`. The key is the name of
/// the tensor that contains the piece, and the value is the index of the state.
std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank);

/// Returns the address of a rank's piece of a state, and the range of elements in this piece.
fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state);

/// Describes and writes the file of one rank in a save.
class RankSave {
public:
  /// Prepares the header of the file and reads the step block. If `isCopy` is false, write() later
  /// writes the states themselves. If `isCopy` is true, write() writes the copies of the states
  /// that the program 'snapshot' has made.
  RankSave(const SaveIndex &layout, uint32_t rank, uint64_t step, const fsdprt_session *session,
           bool isCopy);
  /// Writes the file about.name to `folder`, and stores the size and the hash of the file in
  /// `about`. Throws Error. If `isCopy` is true, write() may be called on another thread while
  /// programs run. If `cancelled` becomes true, write() ends early with an Error.
  void write(const std::string &folder, SaveIndex::File &about,
             const BackgroundTask::Cancelled *cancelled = nullptr) const;

private:
  /// A tensor of the file. Its content is the step block, a copy of a state at `data`, or a state
  /// in the session.
  struct Piece {
    bool isBlock = false;
    const void *data = nullptr;
    uint64_t state = 0, elements = 0, elementBytes = 0;
  };

  const fsdprt_session *session;
  uint32_t rank;
  std::string header;
  std::array<float, FSDPRT_BLOCK_SIZE> block = {};
  /// all tensors, in the order in which they follow each other in the file
  std::vector<Piece> pieces;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RANKSAVE_H
