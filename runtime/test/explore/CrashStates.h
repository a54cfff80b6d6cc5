//===- CrashStates.h - What a power failure may leave -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models the contents of a file system after a power failure. The model guarantees less than common
// file systems do, and no more than POSIX requires. Its rules are:
//
//  1. fsync of a file makes the contents of the file durable, but not the name of the file.
//  2. fsync of a folder makes its names durable. Before this fsync, each change of a name in the
//     folder (create, mkdir, rename, link, unlink) may be lost or kept, independently of other
//     changes.
//  3. A rename within a folder is one change, which is lost or kept as a whole.
//  4. Of the changes to a file since its last fsync, one of these five sets is kept: none, all, the
//     first half, all except the first change, or all with zeros as data. A reader that verifies
//     hashes cannot distinguish more cases.
//
//  5. Readers ignore a folder with a temporary name (".*.tmp"). Only two cases are therefore tried
//     for such a folder: all changes in the folder are lost, or all are kept.
//
// forEachState() calls a function with each tree that is possible if the power fails after the
// operations performed so far.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_EXPLORE_CRASHSTATES_H
#define FSDPRT_TEST_EXPLORE_CRASHSTATES_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdprt::test {

/// An operation on files that FileRecorder.c has recorded.
struct FileOp {
  char kind; ///< first letter of create, truncate, write, fsync, mkdir, rename, link, unlink or
             ///< saved
  std::string path, other;
  uint64_t offset;
  std::string data;

  /// Returns text such as "rename saves/a -> saves/b". `root` is left out of paths.
  std::string text(const std::string &root) const;
};

std::vector<FileOp> readOps(const std::string &file);

/// A tree of files and folders: the key is the path relative to the root, and the value is the
/// content of the file. A folder has no value.
using Tree = std::map<std::string, std::optional<std::string>>;

/// readTree() reads the tree at `root`. writeTree() removes all files at `root` and then writes the
/// tree.
Tree readTree(const std::string &root);
void writeTree(const std::string &root, const Tree &tree);

/// A folder with its contents. The object contains the state that processes see. It also contains
/// the data for computing the states after a power failure.
class Disk {
public:
  /// Creates a model that contains the files of `tree` in durable form.
  explicit Disk(const Tree &tree);
  /// Performs an operation whose paths begin with `root`. Throws std::runtime_error if the model
  /// does not contain the file of the operation.
  void perform(const FileOp &op, const std::string &root);
  /// Returns the tree that processes see.
  Tree current() const;
  /// Calls `callback` with each tree that a power failure may leave now. Stops if `callback`
  /// returns false.
  void forEachState(const std::function<bool(const Tree &)> &callback) const;

private:
  /// A change of the names in a folder: the change removes the name `gone`, adds the name `name`,
  /// or does both.
  struct NameChange {
    std::string gone, name;
    int node = -1; ///< node of `name`; -1 if no name is added
  };
  struct DataChange {
    bool truncates;
    uint64_t offset;
    std::string data;
  };
  struct Node {
    bool isFolder = false;
    std::string durable, content;
    std::vector<DataChange> changes;
    std::map<std::string, int> durableNames, names;
    std::vector<NameChange> nameChanges;
  };

  int find(const std::string &path) const;
  int add(bool isFolder);
  void change(const std::string &path, NameChange what);
  std::vector<std::string> contents(const Node &node) const;
  void addWhole(const std::string &path, int node, bool durable, Tree &tree) const;
  bool expand(std::vector<std::pair<std::string, int>> open, Tree tree,
              const std::function<bool(const Tree &)> &callback) const;
  static void apply(std::string &content, const DataChange &change, bool zeros);
  static void apply(std::map<std::string, int> &names, const NameChange &change);

  std::vector<Node> nodes;
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EXPLORE_CRASHSTATES_H
