//===- NcclStubShared.cpp - Shared state of the NCCL stub -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The id of a world is "fsdprt stub PROCESS DESCRIPTOR INODE". With this id, other processes open
// the file of the world through /proc. For each combination of clique, slot and member, the file
// has a range for the member's contribution. The pages of a range exist only while the range
// contains data.
//
//===----------------------------------------------------------------------===//

#include "testing/nccl/NcclStubShared.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::stub;

static constexpr int lockSeconds = 30;
static constexpr uint64_t roomFor = uint64_t(1) << 32; // largest size of a contribution in bytes

static std::map<std::string, std::weak_ptr<World>> &known() {
  static auto *worlds = new std::map<std::string, std::weak_ptr<World>>;
  return *worlds;
}

bool World::open(int descriptor) {
  file = descriptor;
  if (file < 0)
    return false;
  void *mapped =
      mmap(nullptr, sizeof(SharedNcclState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return false;
  shared = static_cast<SharedNcclState *>(mapped);
  return true;
}

World::~World() {
  if (shared)
    munmap(shared, sizeof(SharedNcclState));
  if (file >= 0)
    close(file);
}

std::shared_ptr<World> World::make() {
  std::shared_ptr<World> world(new World);
  struct stat about = {};
  int descriptor = memfd_create("fsdprt-nccl-stub", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(SharedNcclState)) != 0 ||
      !world->open(descriptor) || fstat(descriptor, &about) != 0)
    return nullptr;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&world->shared->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
  std::snprintf(world->id.bytes, sizeof world->id.bytes, "fsdprt stub %d %d %llu", getpid(),
                descriptor, static_cast<unsigned long long>(about.st_ino));
  known()[world->id.bytes] = world;
  return world;
}

std::shared_ptr<World> World::find(const NcclId &id) {
  std::weak_ptr<World> &here = known()[std::string(id.bytes, strnlen(id.bytes, sizeof id.bytes))];
  if (std::shared_ptr<World> world = here.lock())
    return world;
  int process = 0, descriptor = 0;
  unsigned long long inode = 0;
  struct stat about = {};
  if (std::sscanf(id.bytes, "fsdprt stub %d %d %llu", &process, &descriptor, &inode) != 3)
    return nullptr;
  std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  std::shared_ptr<World> world(new World);
  world->id = id;
  if (!world->open(::open(path.c_str(), O_RDWR | O_CLOEXEC)) || fstat(world->file, &about) != 0 ||
      about.st_ino != inode)
    return nullptr;
  here = world;
  return world;
}

uint32_t World::addClique(uint32_t size) {
  if (size > mostMembers || shared->cliques == mostCliques)
    return mostCliques;
  shared->clique[shared->cliques].size = size;
  return shared->cliques++;
}

static uint64_t placeOf(uint32_t clique, uint32_t slot, uint32_t member) {
  static_assert(sizeof(SharedNcclState) < roomFor);
  return (1 + (uint64_t(clique) * mostUnderWay + slot) * mostMembers + member) * roomFor;
}

/// Calls `move`, pread or pwrite, until all bytes are moved. Returns false on failure.
template <typename Move, typename Byte>
static bool moveAll(Move move, int file, Byte *data, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    ssize_t moved = move(file, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (moved == 0 || (moved < 0 && errno != EINTR))
      return false;
    done += moved > 0 ? static_cast<size_t>(moved) : 0;
  }
  return true;
}

bool World::leave(uint32_t clique, uint32_t slot, uint32_t member, const void *data,
                  size_t bytes) const {
  return bytes <= roomFor && moveAll(pwrite, file, static_cast<const char *>(data), bytes,
                                     placeOf(clique, slot, member));
}

bool World::take(uint32_t clique, uint32_t slot, uint32_t member, size_t from, void *data,
                 size_t bytes) const {
  return moveAll(pread, file, static_cast<char *>(data), bytes,
                 placeOf(clique, slot, member) + from);
}

void World::forget(uint32_t clique, uint32_t slot, uint32_t member) const {
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(placeOf(clique, slot, member)), static_cast<off_t>(roomFor));
}

WorldLock::WorldLock(const World &world) : world(world) {
  timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += lockSeconds;
  int result = pthread_mutex_timedlock(&world->lock, &limit);
  if (result == EOWNERDEAD) {
    pthread_mutex_consistent(&world->lock);
    world->isBroken = true;
  }
  isLocked = result == 0 || result == EOWNERDEAD;
}

WorldLock::~WorldLock() {
  if (isLocked)
    pthread_mutex_unlock(&world->lock);
}
