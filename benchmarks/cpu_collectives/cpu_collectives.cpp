//===- cpu_collectives.cpp - Bandwidth between two ranks ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures all-gather and reduce-scatter of f32 between two ranks on this machine. Prints the best
// rate of all rounds for each collective and size. The rate is the size of the full buffer in GB
// divided by the seconds of the round.
//
//   cpu_collectives                  the shm backend, two processes: 1 to 256 MiB
//   cpu_collectives local KIB...     the local backend, two threads: these sizes
//
// open_mpi.c measures MPI's own collectives; compare.sh prints the results of both programs.
// benchmarks/simulator derives the rates of its links from the rates of the local backend.
//
//===----------------------------------------------------------------------===//

#include "collectives/local/Local.h"
#include "collectives/shm/Shm.h"
#include "collectives/shm/ShmHost.h"
#include "core/FutexEvent.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <thread>

using namespace fsdprt;

static constexpr uint64_t mebibyte = 1 << 20;
static constexpr double secondsPerCase = 0.4;
static constexpr fb::CollectiveKind kinds[] = {fb::CollectiveKind::all_gather,
                                               fb::CollectiveKind::reduce_scatter};

/// Sizes of the full buffers, in bytes.
static std::vector<uint64_t> sizes = {1 * mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte,
                                      256 * mebibyte};

static double bestSeconds(Communicator &communicator, uint32_t collective, uint32_t rank,
                          const Arena &arena, uint64_t bytes, WorkerPool &pool) {
  bool gathers = communicator.getKey(collective).kind == fb::CollectiveKind::all_gather;
  const std::byte *source = arena.at(gathers ? rank * bytes / 2 : 0);
  std::byte *target = arena.at(gathers ? 0 : 256 * mebibyte);
  double best = 1e9;
  // The number of rounds depends only on the size of the buffer, so that both ranks run the same
  // number of rounds.
  uint64_t rounds = std::max<uint64_t>(
      5, static_cast<uint64_t>(secondsPerCase * 4e9 / static_cast<double>(bytes)));
  for (uint64_t round = 0; round < std::min<uint64_t>(rounds, 400); ++round) {
    communicator.barrier();
    double start = monotonicSeconds();
    communicator.start(collective, rank, source, target);
    communicator.wait(collective, rank, pool);
    best = std::min(best, monotonicSeconds() - start);
  }
  return best;
}

static void addAll(Communicator &communicator) {
  for (fb::CollectiveKind kind : kinds)
    for (uint64_t bytes : sizes)
      communicator.add({kind,
                        fb::Reduction::sum,
                        DType::f32,
                        bytes / 4 / 2,
                        0,
                        {0},
                        static_cast<uint32_t>(communicator.numCollectives()),
                        "",
                        ""});
}

static void measureAll(Communicator &communicator, uint32_t rank, const Arena &arena) {
  WorkerPool pool(1, 0);
  for (uint32_t c = 0; c < communicator.numCollectives(); ++c) {
    uint64_t bytes = sizes[c % sizes.size()];
    double seconds = bestSeconds(communicator, c, rank, arena, bytes, pool);
    if (rank == 0)
      std::printf("%s %.10g %.3f\n", fb::EnumNameCollectiveKind(communicator.getKey(c).kind),
                  static_cast<double>(bytes) / mebibyte,
                  static_cast<double>(bytes) / seconds * 1e-9);
  }
}

static void measureShm(ShmHost &host, uint32_t rank) {
  ShmCommunicator communicator(Mesh({{"shard", 2}}), rank, host.takeEndOf(rank), "", 60,
                               spinsFor(2));
  addAll(communicator);
  Arena arena(384 * mebibyte, Arena::Kind::shared);
  arena.prefault();
  communicator.registerArena(rank, {arena.at(0), arena.mappedBytes(), arena.descriptor()});
  communicator.connect();
  measureAll(communicator, rank, arena);
  communicator.leave();
}

static void measureLocal() {
  LocalCommunicator communicator(Mesh({{"shard", 2}}), 60, spinsFor(2));
  addAll(communicator);
  std::vector<std::unique_ptr<Arena>> arenas;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    arenas.push_back(std::make_unique<Arena>(384 * mebibyte));
    arenas[rank]->prefault();
    communicator.registerArena(rank, {arenas[rank]->at(0), arenas[rank]->mappedBytes()});
  }
  communicator.connect();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] { measureAll(communicator, rank, *arenas[rank]); });
  for (std::thread &thread : threads)
    thread.join();
}

/// Sets `sizes` from arguments, which are numbers of KiB. Returns false if an argument is not a
/// number or is larger than an arena.
static bool readSizes(char **arguments, int count) {
  sizes.clear();
  for (int i = 0; i < count; ++i) {
    char *end;
    uint64_t kibibytes = std::strtoull(arguments[i], &end, 10);
    if (*end || kibibytes < 1 || kibibytes > 256 * 1024)
      return false;
    sizes.push_back(kibibytes << 10);
  }
  return !sizes.empty();
}

int main(int count, char **arguments) {
  if (count > 1) {
    if (std::strcmp(arguments[1], "local") != 0 || !readSizes(arguments + 2, count - 2)) {
      std::fprintf(stderr, "usage: cpu_collectives [local KIB...] with KIB from 1 to 262144\n");
      return 2;
    }
    measureLocal();
    return 0;
  }
  ShmHost host(2, 16);
  pid_t children[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0)
      continue;
    try {
      measureShm(host, rank);
    } catch (const Error &error) {
      std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
      _exit(1);
    }
    std::fflush(stdout);
    _exit(0);
  }
  int result = 0;
  for (uint32_t ended = 0; ended < 2;) {
    host.serve(0.02);
    int status;
    if (waitpid(children[ended], &status, WNOHANG) == children[ended]) {
      result |= status;
      ++ended;
    }
  }
  return result != 0;
}
