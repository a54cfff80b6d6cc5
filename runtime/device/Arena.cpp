//===- Arena.cpp - One rank's memory ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The address of an arena must be a multiple of 2 MiB. The constructor therefore maps 2 MiB more
// than the size of the arena, and uses an aligned range of this mapping.
//
//===----------------------------------------------------------------------===//

#include "device/Arena.h"
#include "core/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
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
  mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    failed("cannot reserve %s for a rank's arena: %s", bytesText(bytes).c_str(), strerror(errno));
  uint64_t address = (reinterpret_cast<uint64_t>(mapping) + hugePage - 1) / hugePage * hugePage;
  base = reinterpret_cast<std::byte *>(address);
  if (kind == Kind::shared) {
    file = memfd_create("fsdp-arena", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
        mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             0) == MAP_FAILED) {
      int reason = errno;
      munmap(mapping, mapped);
      if (file >= 0)
        close(file);
      failed("cannot reserve %s of shared memory for a rank's arena: %s", bytesText(bytes).c_str(),
             strerror(reason));
    }
  }
  if (bytes >= hugePage)
    madvise(base, bytes, MADV_HUGEPAGE); // if this call fails, pages have the default size
}

Arena::Arena(const ArenaParts &parts, ArenaSource &memory)
    : mapping(nullptr), mapped(0),
      base(memory.allocate(parts.deviceBytes, ArenaSource::Place::device)),
      bytes(parts.deviceBytes), lent(&memory) {
  if (parts.hostBytes == 0)
    return;
  try {
    hostBase = memory.allocate(parts.hostBytes, ArenaSource::Place::host);
  } catch (...) {
    memory.release(base, ArenaSource::Place::device);
    throw;
  }
  hostBegin = parts.hostBegin;
  firstBytes = parts.deviceBytes;
  bytes = parts.hostBegin + parts.hostBytes;
}

Arena::~Arena() {
  if (hostBase)
    lent->release(hostBase, ArenaSource::Place::host);
  if (lent)
    lent->release(base, ArenaSource::Place::device);
  else
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
  if (lent)
    return;
  int result;
  do
    result = madvise(base, bytes, MADV_POPULATE_WRITE);
  while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0)
    return;
  // EINVAL means that the Linux kernel is too old to support MADV_POPULATE_WRITE.
  if (errno != EINVAL)
    failed("cannot allocate %s of memory for a rank's arena: %s", bytesText(bytes).c_str(),
           strerror(errno));
  uint64_t page = sysconf(_SC_PAGESIZE);
  for (uint64_t offset = 0; offset < bytes; offset += page)
    *reinterpret_cast<volatile char *>(base + offset) = 0;
}
