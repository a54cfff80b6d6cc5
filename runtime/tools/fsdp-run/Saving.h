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
#include "io/SaveFolder.h"
#include "io/SaveIndex.h"

namespace fsdprt {

/// Writes saves of one run.
class Saver {
public:
  /// Throws Error when there can be no saves of this run in `folder`; `resumed` is the save that it goes on from, or
  /// empty. Keeps the newest `keep` (0: all).
  void open(const std::string &folder, const std::string &resumed, uint64_t keep, const fsdprt_artifact *artifact);
  bool isOpen() const { return folder.isOpen(); }
  const std::string &getPath() const { return path; }
  /// Saves what the ranks hold between two steps. Throws Error, with what was there before untouched. Returns bytes.
  uint64_t save(const RunState &run, const fsdprt_session *session);

private:
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
  /// Reads every file. Throws Error unless all are what the index says.
  void verify() const;
  /// Behind verify(): into all ranks, and the reference where there is one.
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
