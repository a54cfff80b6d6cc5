//===- OutputFile.cpp - Files that are written whole or not at all -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The directory is flushed too, so that the new name survives a power cut.
//
//===----------------------------------------------------------------------===//

#include "io/OutputFile.h"
#include "core/Error.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;

/// Opens `path` for writing as it is, or makes it and takes it away again.
static void tryToOpen(const std::string &path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool made = fd >= 0;
  if (!made && errno == EEXIST)
    fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    badInput("%s: cannot write: %s", path.c_str(), strerror(errno));
  ::close(fd);
  if (made)
    ::unlink(path.c_str());
}

void OutputFile::expectWritable(const std::string &path, bool atomic) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // A pipe would wait for its reader: it is only asked for its permissions.
    if (S_ISDIR(status.st_mode) || access(path.c_str(), W_OK) != 0)
      badInput("%s: cannot write: %s", path.c_str(), S_ISDIR(status.st_mode) ? strerror(EISDIR) : strerror(errno));
    return;
  }
  if (access(path.c_str(), F_OK) == 0 || !atomic)
    tryToOpen(path);
  if (atomic)
    tryToOpen(path + ".tmp");
}

void OutputFile::openName(const std::string &name, int flags) {
  struct stat status;
  fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (fd < 0)
    badInput("%s: cannot write: %s", name.c_str(), strerror(errno));
  regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

void OutputFile::open(const std::string &newPath, bool atomic) {
  struct stat status;
  path = newPath;
  // A device or pipe cannot be replaced by a name: write to it.
  if (atomic && (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)))
    temporary = path + ".tmp";
  openName(temporary.empty() ? path : temporary, O_TRUNC);
}

void OutputFile::openBehind(const std::string &newPath, uint64_t bytes) {
  path = newPath;
  openName(path, 0);
  if (regular && (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || lseek(fd, 0, SEEK_END) < 0))
    fail("cannot cut");
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
  size_t slash = path.rfind('/');
  int directory =
      ::open(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory); // some file systems refuse; the name is there all the same
    ::close(directory);
  }
}
