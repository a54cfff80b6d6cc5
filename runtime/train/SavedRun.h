//===- SavedRun.h - The save that a run resumes from ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --resume: loads a save (docs/how-to/save-and-resume.md) into a session. The save may
// be of another mesh, strategy or dtype of states, but must be of the same model.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEDRUN_H
#define FSDPRT_TRAIN_SAVEDRUN_H

#include "train/SaveMapping.h"
#include "train/Saver.h"
#include <memory>

namespace fsdprt {

/// A save from which a run resumes. Each file is opened only once. One descriptor of the file
/// serves to check the hash and later to load the data, so that the file cannot be replaced in
/// between.
class SavedRun {
public:
  /// If a save has at most this size in bytes, each process checks all files. If a save is larger,
  /// a process with one rank checks only the files that this rank reads.
  static constexpr uint64_t wholeLimit = uint64_t(4) << 30;

  /// In tests, `limit` is used instead of wholeLimit.
  explicit SavedRun(uint64_t limit = wholeLimit);
  ~SavedRun();
  /// Finds a save, reads its index and checks its files. If `path` is a folder whose last save is
  /// damaged, uses the newest save that is not damaged. In this case fallback() describes the
  /// damage. Throws Error if all saves are damaged, or if the save belongs to another model or to
  /// another optimizer. `rank` is set if each process has one rank.
  void open(const std::string &path, const std::string &artifactFile,
            const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  bool isOpen() const { return !folder.empty(); }
  const std::string &getFolder() const { return folder; }
  const RunState &state() const { return index.run; }
  /// Returns the hash of the index of the save. If this hash is equal in two processes, the
  /// processes have opened equal saves, because the index contains the hashes of all files.
  const std::string &sha256() const { return index.sha256; }
  /// If the run resumes from an older save than the last, returns the reason. Otherwise returns "".
  const std::string &fallback() const { return whyNotLast; }
  /// Returns a text that describes how this run differs from the saved run, to be printed after
  /// "note: ". Returns an empty text if the save is of the same artifact. `own` describes the
  /// inputs of this run.
  std::string remark(const RunState &own) const;
  /// Loads the states and the step blocks into the ranks of this process. If `reference` is true,
  /// also loads them into the reference program. Throws Error if a file has changed since open()
  /// was called.
  void load(fsdprt_session *session, bool reference) const;

private:
  class File;
  struct Loading;
  [[noreturn]] void refuse(const Error &error) const;
  void readIndexOf(const FoundSave &found);
  void checkLayout(const std::string &artifactFile, const fsdprt_artifact *artifact);
  bool isSameArtifact() const { return index.artifactHash == wanted.artifactHash; }
  std::set<uint64_t> filesOf(const fsdprt_artifact *artifact, uint32_t rank) const;
  void checkFiles(const fsdprt_artifact *artifact, std::optional<uint32_t> rank);
  void loadBlock(fsdprt_session *session, uint32_t into, uint32_t rank) const;
  void loadStates(fsdprt_session *session, uint32_t into) const;
  bool tryOne(const FoundSave &found, const std::string &artifactFile,
              const fsdprt_artifact *artifact, std::optional<uint32_t> rank, Error &problem);
  std::string pathOf(const SaveIndex::File &file) const { return folder + "/" + file.name; }

  uint64_t limit;
  SaveIndex index, wanted; ///< index of the save, and layout of the artifact
  SaveMapping mapping;
  std::string folder, whyNotLast;
  std::vector<std::unique_ptr<File>> files; ///< files of the save, in the order of the ranks
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEDRUN_H
