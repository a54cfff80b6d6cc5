//===- SavedRun.h - The save that a run goes on from ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --resume: from the format of docs/how-to/save-and-resume.md to a session.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEDRUN_H
#define FSDPRT_TRAIN_SAVEDRUN_H

#include "train/Saver.h"
#include <memory>

namespace fsdprt {

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
  /// After open(), in all processes: into the ranks here, and the reference where there is one.
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

#endif // FSDPRT_TRAIN_SAVEDRUN_H
