//===- SaveFolder.cpp - A folder of saves -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder for a save of the same step may already exist although the file 'latest' does not name
// it. This happens if an earlier process died after it had renamed this folder, but before it had
// replaced 'latest'. In this case, the new save replaces the existing folder.
//
// Before the files of an old save are removed, its folder is renamed to a temporary name. A folder
// that has the name of a save is therefore always complete.
//
//===----------------------------------------------------------------------===//

#include "train/SaveFolder.h"
#include "core/Error.h"
#include "io/InputFile.h"
#include "io/OutputFile.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;
namespace fs = std::filesystem;

static constexpr const char prefix[] = "step-";

std::string fsdprt::saveName(uint64_t step) { return format("%s%08llu", prefix, (ull)step); }

static bool hasOnly(const std::string &text, const char *characters) {
  return text.find_first_not_of(characters) == std::string::npos;
}

static bool isSaveName(const std::string &name) {
  std::string number =
      name.substr(0, sizeof prefix - 1) == prefix ? name.substr(sizeof prefix - 1) : "";
  return number.size() >= 8 && number.size() <= 20 && hasOnly(number, "0123456789");
}

static bool isTemporaryName(const std::string &name) {
  return name.size() > 5 && name[0] == '.' && name.compare(name.size() - 4, 4, ".tmp") == 0 &&
         isSaveName(name.substr(1, name.size() - 5));
}

/// Returns the names of those folders in `folder` for which `is` returns true. The names are sorted
/// by their lengths, and names of equal length are sorted alphabetically. The names of saves are
/// therefore in the order of their steps.
static std::vector<std::string> namesIn(const fs::path &folder, bool (*is)(const std::string &)) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is(at->path().filename().string()) && at->is_directory(error))
      names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end(), [](const std::string &a, const std::string &b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

/// Throws an Error that describes `text`, which is the invalid content of 'latest'.
[[noreturn]] static void failLatest(const std::string &path, const std::string &text) {
  std::vector<std::string> saves = namesIn(path, isSaveName);
  std::string advice = "the folder has no save";
  if (!saves.empty())
    advice = "choose a save, such as " + path + "/" + saves.back();
  badInput("%s/latest: expected the name of a save and the SHA-256 of its index, as 64 digits and "
           "a newline, found %s; %s",
           path.c_str(), text.empty() ? "nothing" : ("'" + printable(text) + "'").c_str(),
           advice.c_str());
}

static FoundSave readLatest(const std::string &path) {
  // An InputFile does not wait if another process has replaced the file by a named pipe.
  std::string text = InputFile(path + "/latest", "the name of a save").readAll(1 << 10);
  size_t space = text.find(' ');
  std::string name = text.substr(0, space),
              hash = space == std::string::npos ? "" : text.substr(space + 1);
  if (!isSaveName(name) || hash.size() != 65 || hash[64] != '\n' ||
      !hasOnly(hash.substr(0, 64), "0123456789abcdef"))
    failLatest(path, text);
  return {path + "/" + name, hash.substr(0, 64)};
}

static std::string withoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

FoundSave fsdprt::findSave(const std::string &given) {
  std::string path = withoutSlash(given);
  std::error_code error;
  if (!fs::is_directory(path, error))
    badInput("%s: expected a folder of saves, or a save: %s", path.c_str(),
             error                     ? error.message().c_str()
             : fs::exists(path, error) ? "not a folder"
                                       : strerror(ENOENT));
  if (fs::exists(path + "/index.json", error))
    return {path, ""};
  if (fs::exists(path + "/latest", error))
    return readLatest(path);
  std::vector<std::string> names = namesIn(path, isSaveName);
  if (names.empty())
    badInput("%s: has no save", path.c_str());
  return {path + "/" + names.back(), ""};
}

bool fsdprt::hasSaves(const std::string &folder) { return !namesIn(folder, isSaveName).empty(); }

SaveChoice fsdprt::findSaves(const std::string &given) {
  SaveChoice choice;
  std::string path = withoutSlash(given);
  std::vector<std::string> names = namesIn(path, isSaveName);
  try {
    choice.saves = {findSave(path)};
    choice.isFolder = choice.saves[0].folder != path;
  } catch (const Error &error) {
    if (names.empty())
      throw;
    choice.problem = error.what();
    choice.isFolder = true;
  }
  for (auto name = names.rbegin(); choice.isFolder && name != names.rend(); ++name)
    if (choice.saves.empty() || choice.saves[0].folder != path + "/" + *name)
      choice.saves.push_back({path + "/" + *name, ""});
  return choice;
}

bool fsdprt::isSaveIn(const std::string &path, const std::string &given) {
  std::error_code error;
  fs::path save = fs::path(withoutSlash(given)).lexically_normal();
  return fs::equivalent(path, save.has_parent_path() ? save.parent_path() : fs::path("."), error);
}

std::vector<std::string> fsdprt::savesBeside(const std::string &folder) {
  fs::path path = fs::path(folder).lexically_normal();
  std::vector<std::string> names =
      namesIn(path.has_parent_path() ? path.parent_path() : ".", isSaveName);
  names.erase(std::remove(names.begin(), names.end(), path.filename().string()), names.end());
  std::reverse(names.begin(), names.end());
  for (std::string &name : names)
    name = (path.parent_path() / name).string();
  return names;
}

/// Flushes a folder. Does nothing on file systems that cannot flush folders.
static void flushFolder(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    failed("%s: cannot open: %s", path.c_str(), strerror(errno));
  int result = fsync(fd), reason = errno;
  ::close(fd);
  if (result != 0 && reason != EINVAL && reason != ENOTSUP)
    failed("%s: cannot flush to the disk: %s", path.c_str(), strerror(reason));
}

static void rename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    failed("%s: cannot rename to %s: %s", from.c_str(), to.c_str(), strerror(errno));
}

void SaveFolder::open(const std::string &newPath, const std::string &resumed, bool fellBack) {
  path = withoutSlash(newPath);
  made = mkdir(path.c_str(), 0777) == 0;
  if (!made && errno != EEXIST)
    badInput("%s: cannot create the folder for saves: %s", path.c_str(), strerror(errno));
  // The parent folder is flushed, so that the name of the new folder survives a power failure.
  if (made)
    flushFolder(fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : ".");
  lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0 || access(path.c_str(), W_OK | X_OK) != 0)
    badInput("%s: cannot write to the folder: %s", path.c_str(), strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    badInput("%s: another process saves to this folder", path.c_str());
  std::error_code error;
  if (fs::exists(path + "/latest", error) || !namesIn(path, isSaveName).empty()) {
    std::string latest = fellBack && isSaveIn(path, resumed) ? resumed : findSave(path).folder;
    if (resumed.empty())
      badInput("%s: has saves of another run; resume from the last one with --resume=%s, or save "
               "to another folder",
               path.c_str(), path.c_str());
    if (!fs::equivalent(latest, resumed, error))
      badInput("%s: its last save is %s, but the run resumes from %s; save to another folder",
               path.c_str(), latest.c_str(), resumed.c_str());
  }
  for (const std::string &name : namesIn(path, isTemporaryName))
    fs::remove_all(path + "/" + name, error);
}

SaveFolder::~SaveFolder() {
  abandon();
  if (lock >= 0)
    ::close(lock);
  if (made)
    // An empty folder is removed. rmdir() fails if the folder contains saves, and the saves remain.
    rmdir(path.c_str());
}

std::string SaveFolder::begin(uint64_t step) {
  std::string folder = path + "/." + saveName(step) + ".tmp";
  std::error_code error;
  fs::remove_all(folder, error);
  if (mkdir(folder.c_str(), 0777) != 0)
    failed("%s: cannot create the folder: %s", folder.c_str(), strerror(errno));
  return temporary = folder;
}

void SaveFolder::abandon() noexcept {
  std::error_code error;
  if (!temporary.empty())
    fs::remove_all(temporary, error);
  temporary.clear();
}

void SaveFolder::removeSave(const std::string &name) {
  std::error_code error;
  std::string gone = path + "/." + name + ".tmp";
  fs::remove_all(gone, error);
  rename(path + "/" + name, gone);
  // Errors are ignored, because the next run removes the files that could not be removed.
  fs::remove_all(gone, error);
}

void SaveFolder::commit(uint64_t step, const std::string &indexHash, uint64_t keep) {
  std::string name = saveName(step), line = name + " " + indexHash + "\n";
  flushFolder(temporary);
  std::error_code error;
  std::string aside = path + "/." + saveName(UINT64_MAX) + ".tmp";
  if (fs::exists(path + "/" + name, error))
    rename(path + "/" + name, aside);
  rename(temporary, path + "/" + name);
  temporary.clear();
  flushFolder(path);
  OutputFile latest(path + "/latest", true);
  latest.write(line.data(), line.size());
  latest.commit();
  fs::remove_all(aside, error);
  if (keep)
    prune(keep, name);
}

void SaveFolder::prune(uint64_t keep, const std::string &newest) {
  std::vector<std::string> names = namesIn(path, isSaveName);
  names.erase(std::remove(names.begin(), names.end(), newest), names.end());
  for (size_t i = 0; i + keep <= names.size(); ++i)
    removeSave(names[i]);
}
