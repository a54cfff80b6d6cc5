//===- RankSave.h - The file of a rank in a save ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file of a rank contains the step block of the rank, and its piece of each state. The file
// does not contain a piece that a lower rank also has.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_RANKSAVE_H
#define FSDPRT_TRAIN_RANKSAVE_H

#include "train/BackgroundTask.h"
#include "train/SaveIndex.h"
#include <array>
#include <map>

namespace fsdprt {

/// Name of the tensor that contains the step block of a rank.
inline constexpr const char saveBlockName[] = "step_block";

/// Returns the states of which `rank` writes a piece, as a map from tensor names to state indices.
std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank);

/// Returns the address and the range of a rank's piece of a state.
fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state);

/// The content of a rank's file.
class RankSave {
public:
  /// Describes the file and reads the step block. write() writes the states if `isCopy` is false,
  /// and the copies that the program 'snapshot' has made of them if `isCopy` is true.
  RankSave(const SaveIndex &layout, uint32_t rank, uint64_t step, const fsdprt_session *session,
           bool isCopy);
  /// Writes the file about.name to `folder`, and sets its size and hash in `about`. Throws Error.
  /// If `isCopy` is true, may be called on another thread while programs run. Ends early if
  /// `cancelled` becomes true.
  void write(const std::string &folder, SaveIndex::File &about,
             const BackgroundTask::Cancelled *cancelled = nullptr) const;

private:
  /// A tensor of the file: the step block, a copy of a state at `data`, or a state in the session.
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
