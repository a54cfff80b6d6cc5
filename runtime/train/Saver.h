//===- Saver.h - A run's state to a folder ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --save: from a session to the format of docs/how-to/save-and-resume.md.
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

/// The name of the tensor that holds a rank's step block.
inline constexpr const char saveBlockName[] = "step_block";

/// The states of which `rank` writes a piece, by the names of their tensors.
std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank);

/// Returns which elements of a state a rank holds, and where.
fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state);

/// Writes saves of one run.
class Saver {
public:
  /// Throws Error when there can be no saves of this run in `folder`; `resumed` is the save that it
  /// goes on from, or empty. `fellBack`: newer ones are damaged. Keeps the newest `keep` (0: all).
  /// `rank`: of a process that has only that; the folder is rank 0's.
  void open(const std::string &folder, const std::string &resumed, bool fellBack, uint64_t keep,
            const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  bool isOpen() const { return !path.empty(); }
  const std::string &getPath() const { return path; }
  /// Saves what the ranks hold between two steps. All processes call it, and each writes its ranks'
  /// files. Throws Error, in all of them, with what was there before untouched. Returns bytes.
  /// begun() is called when the folder is there, before this process's files are written.
  uint64_t save(const RunState &run, fsdprt_session *session, const std::function<void()> &begun);

private:
  std::string begin(uint64_t step, fsdprt_session *session);
  void writeRanks(const std::string &to, uint64_t step, SaveIndex &index, fsdprt_session *session);
  uint64_t commit(const std::string &to, SaveIndex &index, fsdprt_session *session);
  /// Gives every process's word to every process, and throws Error, the first one's, when there is
  /// any.
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
