//===- CrashStates.cpp - What a power failure may leave ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each state that a power failure may leave is the result of choices. For each reachable folder, a
// choice determines which name changes of the folder are kept. For each reachable file, a choice
// determines which of its possible contents the file has.
//
//===----------------------------------------------------------------------===//

#include "test/explore/CrashStates.h"
#include "testing/toy/ToyModel.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

using namespace fsdprt::test;
namespace fs = std::filesystem;

std::vector<FileOp> fsdprt::test::readOps(const std::string &file) {
  auto bytes = readFile(file);
  const char *at = reinterpret_cast<const char *>(bytes.data()), *end = at + bytes.size();
  std::vector<FileOp> ops;
  auto take = [&](void *to, size_t size) {
    if (static_cast<size_t>(end - at) < size)
      throw std::runtime_error("a record is cut short");
    std::memcpy(to, at, size);
    at += size;
  };
  while (at < end) {
    FileOp op;
    uint32_t lengths[2];
    uint64_t numbers[2];
    take(&op.kind, 1);
    take(lengths, sizeof lengths);
    take(numbers, sizeof numbers);
    op.path.resize(lengths[0]);
    op.other.resize(lengths[1]);
    op.data.resize(numbers[1]);
    op.offset = numbers[0];
    for (std::string *text : {&op.path, &op.other, &op.data})
      take(text->data(), text->size());
    ops.push_back(std::move(op));
  }
  return ops;
}

std::string FileOp::text(const std::string &root) const {
  static const std::map<char, const char *> words = {
      {'c', "create"}, {'t', "truncate"}, {'w', "write"},  {'f', "fsync"}, {'m', "mkdir"},
      {'r', "rename"}, {'l', "link"},     {'u', "unlink"}, {'s', "print"}};
  auto shortened = [&](const std::string &path) {
    return path.substr(std::min(path.size(), root.size() + 1));
  };
  return std::string(words.at(kind)) + " " + (kind == 's' ? data : shortened(path)) +
         (other.empty() ? "" : " -> " + shortened(other));
}

Tree fsdprt::test::readTree(const std::string &root) {
  Tree tree;
  for (const auto &entry : fs::recursive_directory_iterator(root)) {
    std::string name = fs::relative(entry.path(), root).string();
    if (entry.is_directory()) {
      tree[name] = std::nullopt;
      continue;
    }
    auto bytes = readFile(entry.path().string());
    tree[name] = std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  return tree;
}

void fsdprt::test::writeTree(const std::string &root, const Tree &tree) {
  fs::remove_all(root);
  fs::create_directories(root);
  for (const auto &[name, content] : tree) // a folder comes before its files
    if (content)
      writeFile(root + "/" + name, content->data(), content->size());
    else
      fs::create_directory(root + "/" + name);
}

static std::pair<std::string, std::string> split(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? std::pair(std::string(), path)
                            : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

int Disk::add(bool isFolder) {
  nodes.emplace_back();
  nodes.back().isFolder = isFolder;
  return static_cast<int>(nodes.size()) - 1;
}

Disk::Disk(const Tree &tree) {
  add(true);
  for (const auto &[name, content] : tree) {
    int node = add(!content);
    nodes[node].durable = nodes[node].content = content.value_or("");
    auto [folder, last] = split(name);
    Node &parent = nodes[find(folder)];
    parent.names[last] = parent.durableNames[last] = node;
  }
}

/// Returns the node of a path. The path is relative to the root, and the path of the root is empty.
int Disk::find(const std::string &path) const {
  int node = 0;
  for (size_t from = 0; from < path.size();) {
    size_t to = std::min(path.find('/', from), path.size());
    auto found = nodes[node].names.find(path.substr(from, to - from));
    if (found == nodes[node].names.end())
      throw std::runtime_error("the model has no '" + path + "'");
    node = found->second;
    from = to + 1;
  }
  return node;
}

void Disk::apply(std::string &content, const DataChange &change, bool zeros) {
  if (change.truncates)
    return content.resize(change.offset);
  content.resize(std::max(content.size(), size_t(change.offset) + change.data.size()));
  content.replace(change.offset, change.data.size(),
                  zeros ? std::string(change.data.size(), '\0') : change.data);
}

void Disk::apply(std::map<std::string, int> &names, const NameChange &change) {
  names.erase(change.gone);
  if (change.node >= 0)
    names[change.name] = change.node;
}

/// Applies a name change to the folder that contains `path`, and records the change.
void Disk::change(const std::string &path, NameChange what) {
  Node &folder = nodes[find(split(path).first)];
  apply(folder.names, what);
  folder.nameChanges.push_back(std::move(what));
}

void Disk::perform(const FileOp &op, const std::string &root) {
  auto relative = [&](const std::string &path) {
    return path.size() > root.size() ? path.substr(root.size() + 1) : std::string();
  };
  std::string path = relative(op.path), name = split(path).second;
  switch (op.kind) {
  case 'c':
  case 'm':
    return change(path, {"", name, add(op.kind == 'm')});
  case 'u':
    return change(path, {name, "", -1});
  case 'l':
  case 'r': {
    std::string to = relative(op.other);
    if (split(to).first != split(path).first)
      throw std::runtime_error("the model has no renames between folders");
    return change(to, {op.kind == 'r' ? name : "", split(to).second, find(path)});
  }
  case 't':
  case 'w': {
    Node &node = nodes[find(path)];
    node.changes.push_back({op.kind == 't', op.offset, op.data});
    return apply(node.content, node.changes.back(), false);
  }
  case 'f': {
    Node &node = nodes[find(path)];
    node.durable = node.content;
    node.durableNames = node.names;
    node.changes.clear();
    node.nameChanges.clear();
  }
  }
}

/// Adds a node and all nodes below it to `tree`. If `durable` is true, adds the flushed state of
/// these nodes. Otherwise adds the state that processes see.
void Disk::addWhole(const std::string &path, int number, bool durable, Tree &tree) const {
  const Node &node = nodes[number];
  if (!path.empty())
    tree[path] =
        node.isFolder ? std::nullopt : std::optional(durable ? node.durable : node.content);
  for (const auto &[name, child] : durable ? node.durableNames : node.names)
    addWhole(path.empty() ? name : path + "/" + name, child, durable, tree);
}

Tree Disk::current() const {
  Tree tree;
  addWhole("", 0, false, tree);
  return tree;
}

/// Returns the contents that a file may have (rule 4 of the header).
std::vector<std::string> Disk::contents(const Node &node) const {
  std::vector<std::string> result = {node.durable};
  if (node.changes.empty())
    return result;
  auto with = [&](size_t from, size_t to, bool zeros) {
    std::string content = node.durable;
    for (size_t i = from; i < to; ++i)
      apply(content, node.changes[i], zeros);
    if (std::find(result.begin(), result.end(), content) == result.end())
      result.push_back(content);
  };
  size_t count = node.changes.size();
  with(0, count, false);
  with(0, count / 2, false);
  with(1, count, false);
  with(0, count, true);
  return result;
}

/// Tries all choices for the reachable nodes in `open`, adds the resulting files to `tree`, and
/// calls `callback` with each complete tree.
bool Disk::expand(std::vector<std::pair<std::string, int>> open, Tree tree,
                  const std::function<bool(const Tree &)> &callback) const {
  if (open.empty())
    return callback(tree);
  auto [path, number] = open.back();
  open.pop_back();
  const Node &node = nodes[number];
  if (!node.isFolder) {
    for (std::string &content : contents(node)) {
      tree[path] = std::move(content);
      if (!expand(open, tree, callback))
        return false;
    }
    return true;
  }
  if (std::string name = split(path).second;
      name.size() > 5 && name[0] == '.' && name.compare(name.size() - 4, 4, ".tmp") == 0) {
    for (bool durable : {false, true}) {
      Tree with = tree;
      addWhole(path, number, durable, with);
      if (!expand(open, std::move(with), callback))
        return false;
    }
    return true;
  }
  if (!path.empty())
    tree[path] = std::nullopt;
  if (node.nameChanges.size() > 16)
    throw std::runtime_error("too many changes of names in '" + path + "' without an fsync");
  for (uint32_t kept = 0; kept < 1u << node.nameChanges.size(); ++kept) {
    std::map<std::string, int> names = node.durableNames;
    for (size_t i = 0; i < node.nameChanges.size(); ++i)
      if (kept >> i & 1)
        apply(names, node.nameChanges[i]);
    auto more = open;
    for (const auto &[name, child] : names)
      more.emplace_back(path.empty() ? name : path + "/" + name, child);
    if (!expand(more, tree, callback))
      return false;
  }
  return true;
}

void Disk::forEachState(const std::function<bool(const Tree &)> &callback) const {
  expand({{"", 0}}, {}, callback);
}
