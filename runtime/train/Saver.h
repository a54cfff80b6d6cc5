//===- Saver.h - Saving a run -----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --save: writes the states of a session to a folder, either before the next step begins
// or while steps run (docs/how-to/save-and-resume.md, "Save while training goes on"):
//
//   steps     | 10 | start() | 11 | poll() | 12 | poll() | 13 | poll() |
//   thread           copy [--- write, hash ----]      [- commit -]
//
// start() copies the states to arena memory that the program 'snapshot' reserves. In each process,
// a thread then writes the files of the ranks of this process. When all these threads have ended, a
// thread in the process of rank 0 completes the save. All processes obtain the result from the same
// call of poll(): this call returns the save, or throws an error.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVER_H
#define FSDPRT_TRAIN_SAVER_H

#include "core/Error.h"
#include "train/BackgroundTask.h"
#include "train/RankSave.h"
#include "train/SaveFolder.h"
#include <functional>
#include <optional>

namespace fsdprt {

/// A complete save.
struct FinishedSave {
  uint64_t step = 0, bytes = 0;
  double seconds = 0; ///< seconds from the start of the save until it is complete
};

/// Writes saves of one run. The session of the run must outlive the saver.
class Saver {
public:
  /// Opens the folder `folder`, to which the saves are written. The newest `keep` saves are kept,
  /// or all saves if `keep` is 0. Throws Error if this run must not or cannot write saves to
  /// `folder`. `resumed` is the save from which the run resumes, or empty if the run does not
  /// resume. `fellBack` is true if saves that are newer than `resumed` are damaged. `rank` is set
  /// if each process has one rank. Only the process of rank 0 adds and removes saves.
  void open(const std::string &folder, const std::string &resumed, bool fellBack, uint64_t keep,
            const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  bool isOpen() const { return !path.empty(); }
  const std::string &getPath() const { return path; }

  // If one process calls one of the next functions between two steps, all processes must call this
  // function between the same steps. If a function fails, it throws Error in all processes, and
  // earlier saves remain unchanged.

  /// Saves the ranks' states and returns the size of the save in bytes. No save may be in flight.
  /// Calls begun() when the folder exists, before this process writes its files.
  uint64_t save(const RunState &run, fsdprt_session *session, const std::function<void()> &begun);
  /// Copies the states of the ranks, and starts to write the copies. No other save may be in
  /// progress. The artifact must have the program 'snapshot'.
  void start(const RunState &run, fsdprt_session *session, const std::function<void()> &begun);
  /// Returns true if start() has started a save, and neither poll() nor wait() has returned this
  /// save or thrown its error yet.
  bool isBusy() const { return flight.has_value(); }
  /// Continues the save in flight. Returns the save if it is complete, and otherwise nothing.
  std::optional<FinishedSave> poll(fsdprt_session *session);
  /// Waits for the save in flight and returns it. Returns nothing if no save is in flight.
  std::optional<FinishedSave> wait(fsdprt_session *session);

private:
  /// A save that is written by threads while steps run.
  struct Flight {
    SaveIndex index;
    std::string folder;
    std::vector<RankSave> ranks; ///< files of the ranks of this process
    double began = 0;
    bool isCommitting = false; ///< true if all files of the ranks have been written
    uint64_t bytes = 0;        ///< size of the save in bytes; set only in the process of rank 0
  };
  /// A message that each process sends to all other processes after each part of a save.
  struct Word;

  SaveIndex describe(const RunState &run, const fsdprt_session *session) const;
  std::vector<RankSave> collect(const SaveIndex &index, const fsdprt_session *session,
                                bool isCopy) const;
  std::string begin(uint64_t step, fsdprt_session *session);
  void shareHashes(Word &mine, SaveIndex &index, fsdprt_session *session) const;
  uint64_t commit(const std::string &to, SaveIndex &index);
  std::optional<FinishedSave> advance(fsdprt_session *session);
  /// Exchanges words between all processes, and returns the words that the processes have passed as
  /// `mine`. If words contain errors, throws one of these errors.
  std::vector<Word> meet(const Word &mine, fsdprt_session *session) const;
  template <typename Part>
  auto orAbandon(uint64_t step, Part part);
  uint64_t firstFile() const { return rank.value_or(0); }
  bool isRoot() const { return rank.value_or(0) == 0; }

  std::optional<uint32_t> rank;
  SaveIndex layout;
  SaveFolder folder;
  std::string path;
  uint64_t keep = 0;
  std::optional<Flight> flight;
  /// The task is the last member, so that it is destroyed first: its thread uses the other members.
  BackgroundTask task;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVER_H
