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
#include "execute/RankFault.h"
#include "io/SaveFolder.h"
#include "io/SaveIndex.h"
#include <optional>

namespace fsdprt {

/// Writes saves of one run.
class Saver {
public:
  /// Throws Error when there can be no saves of this run in `folder`; `resumed` is the save that it goes on from, or
  /// empty. Keeps the newest `keep` (0: all). `rank`: of a process that has only that; the folder is rank 0's.
  void open(const std::string &folder, const std::string &resumed, uint64_t keep, const fsdprt_artifact *artifact,
            std::optional<uint32_t> rank);
  bool isOpen() const { return !path.empty(); }
  const std::string &getPath() const { return path; }
  /// Saves what the ranks hold between two steps. All processes call it, and each writes its ranks' files. Throws Error,
  /// in all of them, with what was there before untouched. Returns bytes.
  uint64_t save(const RunState &run, fsdprt_session *session);
  /// Plants a fault in the next save: before this process's files are written.
  void strikeWithin(const RankFault &planted) { fault = planted; }

private:
  std::string begin(uint64_t step, fsdprt_session *session);
  void writeRanks(const std::string &to, uint64_t step, SaveIndex &index, fsdprt_session *session);
  uint64_t commit(const std::string &to, SaveIndex &index, fsdprt_session *session);
  /// Gives every process's word to every process, and throws Error, the first one's, when there is any.
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

/// A save that a run goes on from.
class SavedRun {
public:
  /// Finds it and reads its index. Throws Error when that is damaged, or of another artifact or mesh.
  void open(const std::string &path, const std::string &artifactFile, const fsdprt_artifact *artifact);
  bool isOpen() const { return !folder.empty(); }
  const std::string &getFolder() const { return folder; }
  const RunState &state() const { return index.run; }
  /// Reads every file, or that of one rank. Throws Error unless they are what the index says.
  void verify(std::optional<uint32_t> rank) const;
  /// Behind verify(), in all processes: into the ranks here, and the reference where there is one.
  void load(fsdprt_session *session, bool reference) const;

private:
  [[noreturn]] void refuse(const Error &error) const;
  void verifyFile(const SaveIndex::File &file) const;
  std::string pathOf(const SaveIndex::File &file) const { return folder + "/" + file.name; }

  SaveIndex index;
  std::string folder;
};

} // namespace fsdprt

#endif // FSDP_RUN_SAVING_H
