//===- MappedFile.cpp - A file as memory ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// open, fstat, mmap.
//
//===----------------------------------------------------------------------===//

#include "io/MappedFile.h"
#include "core/Error.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;

MappedFile::MappedFile(const std::string &path, const char *what) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    badInput("%s: cannot open %s: %s", path.c_str(), what, strerror(errno));
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    badInput("%s: expected %s, found something that is not a file", path.c_str(), what);
  }
  length = status.st_size;
  void *memory = length ? mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  int reason = errno;
  ::close(fd);
  if (memory == MAP_FAILED)
    badInput("%s: cannot map %s: %s", path.c_str(), what, strerror(reason));
  bytes = static_cast<const std::byte *>(memory);
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<std::byte *>(bytes), length);
}
