//===- SaveFolder.h - Saves on disk -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     DIR/step-00000010/index.json                one folder per save, which appears whole
//     DIR/step-00000010/rank-00000.safetensors
//     DIR/latest                                  "step-00000010 <SHA-256 of its index>"
//     DIR/.step-00000020.tmp/...                  one that is being written, or removed
//
// A save: files into the temporary folder, each flushed, then that folder; rename;
// flush DIR; then 'latest', by a temporary name too. Whenever a process dies in this, 'latest'
// names a save that is whole. Only one process saves into a DIR.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEFOLDER_H
#define FSDPRT_TRAIN_SAVEFOLDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

/// "step-00000010".
std::string saveName(uint64_t step);

/// A save that was found: its folder, and the hash that its index has to have (empty: any).
struct FoundSave {
  std::string folder, indexHash;
};
/// `path` is a save, or a folder of saves, of which the one that 'latest' names is meant; without
/// 'latest' the one of the highest step. Throws Error when there is none.
FoundSave findSave(const std::string &path);
/// The saves that a run may go on from, the preferred one first.
struct SaveChoice {
  std::vector<FoundSave> saves;
  bool isFolder = false; ///< `path` was a folder of saves, and all of them are here, those after
                         ///< the first by steps
  std::string
      problem; ///< why 'latest' does not say which is the first; empty: it does, or is not there
};
/// Finds the saves that `path` stands for. Throws Error when there is none.
SaveChoice findSaves(const std::string &path);
/// Returns whether there is any save in a folder, whole or not.
bool hasSaves(const std::string &folder);
/// The other saves beside one, the newest first.
std::vector<std::string> savesBeside(const std::string &folder);

class SaveFolder {
public:
  SaveFolder() = default;
  ~SaveFolder();
  SaveFolder(const SaveFolder &) = delete;
  SaveFolder &operator=(const SaveFolder &) = delete;

  /// Makes the folder where it is missing, keeps other processes out, and removes what a process
  /// that died has left over. Saves that are there already have to be those of this run: `resumed`
  /// is the save that it goes on from, or empty. It has to be the last one, or, where `fellBack`,
  /// the last one that is whole.
  void open(const std::string &path, const std::string &resumed, bool fellBack = false);
  bool isOpen() const { return lock >= 0; }

  /// Makes the temporary folder of a save.
  std::string begin(uint64_t step);
  /// Its files are there and flushed. Keeps the newest `keep` saves (0: all).
  void commit(uint64_t step, const std::string &indexHash, uint64_t keep);
  /// Removes what begin() made, as far as that goes.
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
