//===- SaveFolder.h - A folder of saves -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     DIR/step-00000010/index.json                one folder per complete save
//     DIR/step-00000010/rank-00000.safetensors
//     DIR/latest                                  "step-00000010 <SHA-256 of that save's index>"
//     DIR/.step-00000020.tmp/...                  a save that is being written or removed
//
// A save is first written to the temporary folder. Its files and this folder are flushed. The
// folder is then renamed, and DIR is flushed. At last, a new file replaces 'latest', which
// therefore always names a complete save, no matter when the process dies. Only one process at a
// time can save to DIR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEFOLDER_H
#define FSDPRT_TRAIN_SAVEFOLDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

/// Returns a name such as "step-00000010".
std::string saveName(uint64_t step);

/// The folder of a save, and the SHA-256 that its index must have. If `indexHash` is empty, the
/// index may have any hash.
struct FoundSave {
  std::string folder, indexHash;
};
/// Finds a save. `path` is the folder of a save, or a folder that contains saves. In the second
/// case, returns the save that 'latest' names. If there is no file 'latest', returns the save with
/// the highest step. Throws Error if there is no save.
FoundSave findSave(const std::string &path);
/// The saves from which a run may resume. The run tries them in this order.
struct SaveChoice {
  std::vector<FoundSave> saves;
  bool isFolder = false; ///< false if the given path is a single save
  std::string problem;   ///< reason why the file 'latest' is invalid; empty if it is valid
};

/// Returns the save `path`, or all saves in the folder `path`: first the save that 'latest' names,
/// and then the other saves, newest first. Throws Error if there is no save.
SaveChoice findSaves(const std::string &path);
/// Returns true if `folder` contains a save. The save may be damaged.
bool hasSaves(const std::string &folder);
bool isSaveIn(const std::string &path, const std::string &save);
/// Returns the other saves in the parent folder of the save `folder`, newest first.
std::vector<std::string> savesBeside(const std::string &folder);

class SaveFolder {
public:
  SaveFolder() = default;
  ~SaveFolder();
  SaveFolder(const SaveFolder &) = delete;
  SaveFolder &operator=(const SaveFolder &) = delete;

  /// Creates the folder if it does not exist, and locks it against other processes. Removes
  /// temporary folders that processes have left when they died. `resumed` is the save from which
  /// the run resumes, or empty if the run does not resume. Throws Error if the folder contains
  /// saves and `resumed` is not the last of them. If `fellBack` is true, `resumed` may also be an
  /// older save in the folder.
  void open(const std::string &path, const std::string &resumed, bool fellBack = false);
  bool isOpen() const { return lock >= 0; }
  /// Creates the temporary folder of a save and returns its path.
  std::string begin(uint64_t step);
  /// Completes a save whose files are flushed. Keeps the newest `keep` saves, or all if `keep` is
  /// 0.
  void commit(uint64_t step, const std::string &indexHash, uint64_t keep);
  /// Removes the temporary folder of a save. Ignores errors.
  void abandon() noexcept;

private:
  void removeSave(const std::string &name);
  void prune(uint64_t keep, const std::string &newest);

  std::string path, temporary;
  int lock = -1;
  bool made = false;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEFOLDER_H
