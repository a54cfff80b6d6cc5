//===- CrashStates.h - What a power failure may leave -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Model of a file system after a power failure. The model guarantees less than common file systems
// do, and no more than POSIX requires:
//
//  1. fsync of a file keeps the contents of the file, and not its name.
//  2. fsync of a folder keeps its names. Before this fsync, each change of a name in the folder
//     (create, mkdir, rename, link, unlink) may be lost or kept, independently of other changes.
//  3. A rename within a folder is one change: either both names change, or none does.
//  4. Of the changes to a file since its last fsync, these cases are tried: none, all, the first
//     half, all but the first, and all with zeros as data. A reader that verifies hashes cannot
//     distinguish more cases.
//
//  5. For a folder with a temporary name (".*.tmp"), which readers ignore, two cases are tried: all
//     changes in this folder are lost, or all are kept.
//
// forEachState() calls a function with each tree that is possible after the operations so far.
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

/// An operation on files, from FileRecorder.c.
struct FileOp {
  char kind; ///< initial of create, truncate, write, fsync, mkdir, rename, link, unlink or saved
  std::string path, other;
  uint64_t offset;
  std::string data;

  /// Returns text such as "rename saves/a -> saves/b". `root` is left out of paths.
  std::string text(const std::string &root) const;
};

/// Reads a file that FileRecorder.c has written.
std::vector<FileOp> readOps(const std::string &file);

/// A tree of files: contents by path relative to the root. A folder has no content.
using Tree = std::map<std::string, std::optional<std::string>>;

/// Read or write a tree at `root`. writeTree() first removes all files at `root`.
Tree readTree(const std::string &root);
void writeTree(const std::string &root, const Tree &tree);

/// A folder in two states: as processes see it now, and as it may be after a power failure.
class Disk {
public:
  /// Begins with `tree`, which is on the disk.
  explicit Disk(const Tree &tree);
  /// Performs an operation whose paths begin with `root`. Throws std::runtime_error if the model
  /// has no such file.
  void perform(const FileOp &op, const std::string &root);
  /// Returns the tree that processes see.
  Tree current() const;
  /// Calls `callback` with each tree that a power failure may leave now, until it returns false.
  void forEachState(const std::function<bool(const Tree &)> &callback) const;

private:
  /// A change of a folder, which removes the name `gone`, adds the name `name`, or does both.
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
