//===- Saving.h - A run's state to and from a folder ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --save and --resume: between a session and the format of docs/Saving.md.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_SAVING_H
#define FSDP_RUN_SAVING_H

#include "core/Error.h"
#include "testing/faults/FaultInjection.h"
#include "train/SaveFolder.h"
#include "train/SaveIndex.h"
#include <map>
#include <memory>
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
  uint64_t save(const RunState &run, fsdprt_session *session);
  /// Plants a fault in the next save: before this process's files are written.
  void injectFault(const RankFault &planted) { fault = planted; }

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
  RankFault fault;
  SaveIndex layout;
  SaveFolder folder;
  std::string path;
  uint64_t keep = 0;
};

/// A save that a run goes on from. Each of its files is opened once: what is loaded is read from
/// the descriptor whose content was compared with the index.
class SavedRun {
public:
  /// The largest save, in bytes, of which each process checks all files. Of a larger one a process
  /// that has one rank checks that rank's file, and the others when it reads from them.
  static constexpr uint64_t wholeLimit = uint64_t(4) << 30;

  SavedRun();
  ~SavedRun();
  /// Finds a save, reads its index and checks its files. Where `path` is a folder of saves and the
  /// last one is damaged, takes the newest one that is whole, and fallback() says why. Throws Error
  /// when there is none, or when it is of another artifact or mesh. `rank`: of a process that has
  /// only that.
  void open(const std::string &path, const std::string &artifactFile,
            const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  bool isOpen() const { return !folder.empty(); }
  const std::string &getFolder() const { return folder; }
  const RunState &state() const { return index.run; }
  /// Returns the hash of the index, which has those of all files.
  const std::string &sha256() const { return index.sha256; }
  /// Returns why the run does not go on from the last save; empty when it does.
  const std::string &fallback() const { return whyNotLast; }
  /// Behind open(), in all processes: into the ranks here, and the reference where there is one.
  /// Throws Error when a file is not what the index says any more.
  void load(fsdprt_session *session, bool reference) const;

private:
  class File;
  [[noreturn]] void refuse(const Error &error) const;
  void readIndexOf(const FoundSave &found);
  void checkLayout(const std::string &artifactFile, const fsdprt_artifact *artifact) const;
  void checkFiles(std::optional<uint32_t> rank);
  bool tryOne(const FoundSave &found, const std::string &artifactFile,
              const fsdprt_artifact *artifact, std::optional<uint32_t> rank, Error &problem);
  std::string pathOf(const SaveIndex::File &file) const { return folder + "/" + file.name; }

  SaveIndex index;
  std::string folder, whyNotLast;
  std::vector<std::unique_ptr<File>> files; ///< of the ranks
};

} // namespace fsdprt

#endif // FSDP_RUN_SAVING_H
