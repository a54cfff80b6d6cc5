//===- Fuzzing.cpp - What the fuzz targets share ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//===----------------------------------------------------------------------===//

#include "fuzz/Fuzzing.h"
#include "fsdpcommon/ShortText.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::fuzz;

void fuzz::expectReadable(const std::string &message) {
  constexpr size_t most = 16 << 10;
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (!line.empty() && fsdpcommon::shortText(line, most) == line)
    return;
  std::fprintf(stderr, "a message of %zu bytes is empty, too long or not printable: %.*s\n",
               message.size(), static_cast<int>(std::min<size_t>(message.size(), 2000)),
               message.c_str());
  std::abort();
}

MemoryFile::MemoryFile() : file(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (file < 0)
    std::abort();
  path = "/proc/self/fd/" + std::to_string(file);
}

MemoryFile::~MemoryFile() { close(file); }

void MemoryFile::write(const void *data, size_t size) {
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
}
