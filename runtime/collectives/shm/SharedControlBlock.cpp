//===- SharedControlBlock.cpp - Shared state of ranks on a machine -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// New shared memory contains zeros, and 0 is the initial value of every member.
//
//===----------------------------------------------------------------------===//

#include "collectives/shm/SharedControlBlock.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace fsdprt;

static constexpr uint64_t boardMagic = 0x3144524f42445346; // the characters "FSDBORD1"

static_assert(std::atomic<uint64_t>::is_always_lock_free, "atomics of shared memory");

uint64_t SharedControlBlock::bytesFor(uint32_t ranks, uint32_t collectives) {
  return headerBytes + ranks * sizeof(RankSlot) + collectives * nameBytes +
         uint64_t(ranks) * collectives * sizeof(CollectiveSlot);
}

char *SharedControlBlock::name(uint32_t collective) const {
  return reinterpret_cast<char *>(base + headerBytes + ranks() * sizeof(RankSlot) +
                                  collective * nameBytes);
}

CollectiveSlot *SharedControlBlock::slots(uint32_t rank) const {
  return reinterpret_cast<CollectiveSlot *>(name(collectives())) + uint64_t(rank) * collectives();
}

void SharedControlBlock::map() {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    failed("cannot map the control block of the ranks, %s: %s", bytesText(bytes).c_str(),
           strerror(errno));
  base = static_cast<std::byte *>(mapped);
}

SharedControlBlock::SharedControlBlock(uint32_t ranks, uint32_t collectives)
    : bytes(bytesFor(ranks, collectives)) {
  file = memfd_create("fsdp-control-block", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
    failed("cannot create the control block of the ranks, %s: %s", bytesText(bytes).c_str(),
           strerror(errno));
  map();
  header().magic = boardMagic;
  header().bytes = bytes;
  header().ranks = ranks;
  header().collectives = collectives;
}

SharedControlBlock::SharedControlBlock(int descriptor) : file(descriptor) {
  struct stat about = {};
  if (fstat(file, &about) != 0 || about.st_size < static_cast<off_t>(headerBytes))
    failed("expected the control block of the ranks, found a descriptor of another file");
  bytes = static_cast<uint64_t>(about.st_size);
  map();
  if (header().magic != boardMagic || header().bytes != bytes ||
      bytes != bytesFor(ranks(), collectives()))
    failed("expected the control block of the ranks, found a block of another format");
}

SharedControlBlock::~SharedControlBlock() {
  if (base)
    munmap(base, bytes);
  if (file >= 0)
    close(file);
}

std::string Watcher::silence() const {
  return format("the process that %s (process %u) has sent no heartbeat for %g s",
                startedRanks ? "started the ranks" : "watches the ranks", process,
                heartbeatSeconds);
}

std::unique_ptr<Watchdog> SharedControlBlock::watchdog(double timeoutSeconds) const {
  return std::make_unique<Watchdog>(&rankSlot(0).progress, sizeof(RankSlot), &header().failed,
                                    ranks(), timeoutSeconds);
}
