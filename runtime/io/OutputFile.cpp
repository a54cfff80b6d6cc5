//===- OutputFile.cpp - Files written completely or not at all ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// commit() also flushes the folder, so that the new name survives a power failure. A process keeps
// its temporary file locked until the process ends or commits the file. If a temporary file from
// this machine is not locked, the process that created it has died. The next process that writes
// the same FILE then removes the temporary file.
//
//===----------------------------------------------------------------------===//

#include "io/OutputFile.h"
#include "core/Error.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace fsdprt;

/// Opens a file for writing. If `path` is a named pipe, waits at most 10 seconds for a process that
/// reads it. Returns -1 and sets errno on failure.
static int openToWrite(const std::string &path, int flags) {
  for (int attempt = 0;; ++attempt) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666);
    if (fd >= 0)
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (fd >= 0 || errno != ENXIO || attempt == 500)
      return fd;
    ::usleep(20000);
  }
}

/// Describes `error`, the value of errno after openToWrite() has failed.
static const char *whyNot(int error) {
  return error == ENXIO ? "it is a named pipe that no process reads" : strerror(error);
}

/// Throws Error if a file cannot be opened for writing. If the file does not exist, creates the
/// file and removes it again.
static void tryToOpen(const std::string &path) {
  int fd = openToWrite(path, O_CREAT | O_EXCL);
  bool made = fd >= 0;
  if (!made && errno == EEXIST)
    fd = openToWrite(path, 0);
  if (fd < 0)
    badInput("%s: cannot write: %s", path.c_str(), whyNot(errno));
  ::close(fd);
  if (made)
    ::unlink(path.c_str());
}

void OutputFile::expectWritable(const std::string &path, bool atomic) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // Only permissions are checked, because opening a pipe would wait for a process that reads it.
    if (S_ISDIR(status.st_mode) || access(path.c_str(), W_OK) != 0)
      badInput("%s: cannot write: %s", path.c_str(),
               S_ISDIR(status.st_mode) ? strerror(EISDIR) : strerror(errno));
    return;
  }
  bool exists = access(path.c_str(), F_OK) == 0;
  // Any error other than ENOENT means that the file cannot be created. An example is ENAMETOOLONG.
  if (!exists && errno != ENOENT)
    badInput("%s: cannot write: %s", path.c_str(), strerror(errno));
  if (exists || !atomic)
    tryToOpen(path);
  // The destructor of `probe` removes the temporary file.
  if (atomic) {
    OutputFile probe;
    probe.path = path;
    probe.openTemporary();
  }
}

// A name of a file has at most 255 bytes, so a temporary name contains only this number of bytes of
// the final name.
static constexpr size_t longestBase = 200;

/// Returns a hash of the host name as eight hexadecimal digits.
static std::string machineDigits() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  uint32_t hash = 0x811c9dc5;
  for (const char *c = name; *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x01000193;
  return format("%08x", hash);
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

/// Returns the common prefix of the names of all temporary files of `path` from this machine.
static std::string temporaryPrefix(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string base = path.substr(slash == std::string::npos ? 0 : slash + 1);
  return base.substr(0, longestBase) + "." + machineDigits();
}

/// Removes those temporary files with the prefix `prefix` whose processes have ended.
static void removeAbandoned(const std::string &folder, const std::string &prefix) {
  constexpr const char end[] = ".tmp";
  size_t length = prefix.size() + 8 + sizeof end - 1;
  std::unique_ptr<DIR, int (*)(DIR *)> names(opendir(folder.c_str()), closedir);
  for (dirent *entry; names && (entry = readdir(names.get()));) {
    std::string name = entry->d_name;
    if (name.size() != length || name.compare(0, prefix.size(), prefix) != 0 ||
        name.compare(length - (sizeof end - 1), sizeof end - 1, end) != 0)
      continue;
    int file =
        ::openat(dirfd(names.get()), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(dirfd(names.get()), name.c_str(), 0);
    if (file >= 0)
      ::close(file);
  }
}

void OutputFile::openTemporary() {
  std::string folder = folderOf(path), prefix = temporaryPrefix(path);
  removeAbandoned(folder, prefix);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    uint32_t digits = 0;
    if (getrandom(&digits, sizeof digits, 0) != static_cast<ssize_t>(sizeof digits))
      failed("cannot draw random numbers: %s", strerror(errno));
    std::string name = folder + prefix + format("%08x", digits) + ".tmp";
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST)
      badInput("%s: cannot write: %s", path.c_str(), strerror(errno));
    // Until this process has locked the file, another process may assume that this process has
    // died, and may remove the file.
    bool isLocked = fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    struct stat status;
    if (fd >= 0 && (!isLocked || fstat(fd, &status) != 0 || status.st_nlink == 0))
      ::close(std::exchange(fd, -1));
    if (fd < 0)
      continue;
    temporary = name;
    regular = true;
    return;
  }
  failed("%s: cannot create a temporary file in its folder: all names are taken", path.c_str());
}

void OutputFile::openName(const std::string &name, int flags) {
  struct stat status;
  fd = openToWrite(name, O_CREAT | flags);
  if (fd < 0 && errno == ENXIO) // expectWritable() does not open pipes
    failed("%s: cannot write: %s", name.c_str(), whyNot(errno));
  if (fd < 0)
    badInput("%s: cannot write: %s", name.c_str(), strerror(errno));
  regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

void OutputFile::open(const std::string &newPath, bool atomic) {
  struct stat status;
  path = newPath;
  // Devices and pipes are written directly, because rename(2) would replace them by a file.
  if (atomic && (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)))
    return openTemporary();
  openName(path, O_TRUNC);
}

void OutputFile::openNew(const std::string &newPath) {
  path = newPath;
  openName(path, O_EXCL | O_NOFOLLOW);
}

void OutputFile::openBehind(const std::string &newPath, uint64_t bytes) {
  path = newPath;
  openName(path, 0);
  if (regular && (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || lseek(fd, 0, SEEK_END) < 0))
    fail("cannot truncate");
}

OutputFile::~OutputFile() {
  if (fd < 0)
    return;
  ::close(fd);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

void OutputFile::fail(const char *doing) {
  int reason = errno;
  failed("%s: %s: %s", path.c_str(), doing, strerror(reason));
}

void OutputFile::write(const void *data, size_t size) {
  const char *from = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t done = ::write(fd, from, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      fail("cannot write");
    from += done;
    size -= done;
  }
}

void OutputFile::commit() {
  if (regular && fsync(fd) != 0)
    fail("cannot flush to the disk");
  int result = ::close(fd);
  fd = -1;
  if (result != 0) {
    if (!temporary.empty())
      ::unlink(temporary.c_str());
    fail("cannot close");
  }
  if (temporary.empty())
    return;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail("cannot rename its temporary file");
  }
  int directory = ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    // Errors are ignored, because some file systems cannot flush a folder.
    fsync(directory);
    ::close(directory);
  }
}
