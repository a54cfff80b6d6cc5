//===- Arena.cpp - One rank's memory ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mmap with 2 MiB to spare, the aligned part of it in use.
//
//===----------------------------------------------------------------------===//

#include "device/Arena.h"
#include "core/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

using namespace fsdprt;

static constexpr uint64_t hugePage = uint64_t(2) << 20;

Arena::Arena(uint64_t size, Kind kind) {
  uint64_t page = sysconf(_SC_PAGESIZE);
  bytes = std::max(page, (size + page - 1) / page * page);
  mapped = bytes + hugePage;
  mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    failed("cannot reserve %s for a rank's arena: %s", bytesText(bytes).c_str(), strerror(errno));
  uint64_t address = (reinterpret_cast<uint64_t>(mapping) + hugePage - 1) / hugePage * hugePage;
  base = reinterpret_cast<std::byte *>(address);
  if (kind == Kind::shared) {
    file = memfd_create("fsdp-arena", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
        mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) {
      int reason = errno;
      munmap(mapping, mapped);
      if (file >= 0)
        close(file);
      failed("cannot reserve %s of shared memory for a rank's arena: %s", bytesText(bytes).c_str(), strerror(reason));
    }
  }
  if (bytes >= hugePage)
    madvise(base, bytes, MADV_HUGEPAGE); // a hint: small pages do as well
}

Arena::~Arena() {
  munmap(mapping, mapped);
  if (file >= 0)
    close(file);
}

PeerArena::PeerArena(int descriptor, uint64_t bytes) : bytes(bytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (mapped == MAP_FAILED)
    failed("cannot map %s of another rank's arena: %s", bytesText(bytes).c_str(), strerror(errno));
  base = static_cast<std::byte *>(mapped);
}

PeerArena::~PeerArena() { munmap(base, bytes); }

void Arena::prefault() {
  int result;
  do
    result = madvise(base, bytes, MADV_POPULATE_WRITE);
  while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0)
    return;
  if (errno != EINVAL) // an older kernel does not know the request
    failed("cannot get %s of memory for a rank's arena: %s", bytesText(bytes).c_str(), strerror(errno));
  uint64_t page = sysconf(_SC_PAGESIZE);
  for (uint64_t offset = 0; offset < bytes; offset += page)
    *reinterpret_cast<volatile char *>(base + offset) = 0;
}

static bool readNumber(const char *path, const char *key, uint64_t &value) {
  std::FILE *file = std::fopen(path, "re");
  if (!file)
    return false;
  char line[256];
  bool found = false;
  size_t length = std::strlen(key);
  while (!found && std::fgets(line, sizeof line, file))
    found = std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%lu", &value) == 1;
  std::fclose(file);
  return found;
}

uint64_t fsdprt::availableMemory() {
  uint64_t available = UINT64_MAX, value, used;
  if (readNumber("/proc/meminfo", "MemAvailable:", value))
    available = value * 1024;
  if (readNumber("/sys/fs/cgroup/memory.max", "", value) && readNumber("/sys/fs/cgroup/memory.current", "", used))
    available = std::min(available, value > used ? value - used : 0);
  return available;
}

uint64_t fsdprt::addressSpaceLeft() {
  rlimit limit = {};
  uint64_t mapped;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      !readNumber("/proc/self/status", "VmSize:", mapped))
    return UINT64_MAX;
  mapped *= 1024;
  return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

uint64_t fsdprt::threadStackBytes() {
  rlimit limit = {};
  bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : uint64_t(8) << 20;
}
