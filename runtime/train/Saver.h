//===- Saver.h - Saving a run -----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --save: writes a session to a folder (docs/how-to/save-and-resume.md).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVER_H
#define FSDPRT_TRAIN_SAVER_H

#include "core/Error.h"
#include "train/SaveFolder.h"
#include "train/SaveIndex.h"
#include <functional>
#include <map>
#include <optional>

namespace fsdprt {

/// Name of the tensor that holds a rank's step block.
inline constexpr const char saveBlockName[] = "step_block";

/// Returns a map from tensor names to indices of states: those of which `rank` writes a piece.
std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank);

/// Returns the address and range of the elements of a state that a rank holds.
fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state);

class Saver {
public:
  /// Prepares saving to `folder`, which keeps the newest `keep` saves, or all if `keep` is 0.
  /// Throws Error if this run cannot save there. `resumed` is the save from which the run resumes,
  /// or empty. `fellBack` is true if newer saves than `resumed` are damaged. `rank` is set if each
  /// process has one rank. Only the process of rank 0 adds and removes saves.
  void open(const std::string &folder, const std::string &resumed, bool fellBack, uint64_t keep,
            const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  bool isOpen() const { return !path.empty(); }
  const std::string &getPath() const { return path; }
  /// Saves the states of the ranks, and returns the size of the save in bytes. All processes must
  /// call save() after the same step; each writes the files of its ranks. Calls begun() before this
  /// process writes its files. On failure, throws Error in all processes and leaves earlier saves
  /// unchanged.
  uint64_t save(const RunState &run, fsdprt_session *session, const std::function<void()> &begun);

private:
  std::string begin(uint64_t step, fsdprt_session *session);
  void writeRanks(const std::string &to, uint64_t step, SaveIndex &index, fsdprt_session *session);
  uint64_t commit(const std::string &to, SaveIndex &index, fsdprt_session *session);
  /// Exchanges results between processes and returns them by rank. Throws the error of the lowest
  /// rank that failed.
  struct Word;
  std::vector<Word> meet(const Word &mine, fsdprt_session *session) const;
  bool isRoot() const { return rank.value_or(0) == 0; }

  std::optional<uint32_t> rank;
  SaveIndex layout;
  SaveFolder folder;
  std::string path;
  uint64_t keep = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVER_H
