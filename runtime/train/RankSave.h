//===- RankSave.h - The file of a rank in a save ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's file holds its step block and its piece of each state, unless a lower rank holds the
// same piece.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RANKSAVE_H
#define FSDPRT_TRAIN_RANKSAVE_H

#include "train/BackgroundTask.h"
#include "train/SaveIndex.h"
#include <array>
#include <map>

namespace fsdprt {

/// Name of the tensor that holds a rank's step block.
inline constexpr const char saveBlockName[] = "step_block";

/// Returns the states of which `rank` writes a piece: a map from tensor names to state indices.
std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank);

/// Returns the address and range of the elements of a state that a rank holds.
fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state);

/// The content of a rank's file.
class RankSave {
public:
  /// Describes the file and reads the step block. If `isCopy` is true, write() writes the copy that
  /// the program 'snapshot' has made, and otherwise the states.
  RankSave(const SaveIndex &layout, uint32_t rank, uint64_t step, const fsdprt_session *session,
           bool isCopy);
  /// Writes the file about.name to `folder`, and its size and hash to `about`. Throws Error.
  /// Another thread may write a copy while programs run; write() ends early if `cancelled` is set.
  void write(const std::string &folder, SaveIndex::File &about,
             const BackgroundTask::Cancelled *cancelled = nullptr) const;

private:
  /// A tensor of the file: the step block, a copy at `data`, or a state to read from the session.
  struct Piece {
    bool isBlock = false;
    const void *data = nullptr;
    uint64_t state = 0, elements = 0, elementBytes = 0;
  };

  const fsdprt_session *session;
  uint32_t rank;
  std::string header;
  std::array<float, FSDPRT_BLOCK_SIZE> block = {};
  std::vector<Piece> pieces; ///< tensors in the order of the file
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_RANKSAVE_H
