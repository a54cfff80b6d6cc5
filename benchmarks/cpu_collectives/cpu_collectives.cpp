//===- cpu_collectives.cpp - Bandwidth between two processes -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All-gather and reduce-scatter (f32) of the shm backend between two processes of this machine, over whole buffers of 1
// to 256 MiB: a line per kind and size with the best of the rounds, in GB/s of the whole buffer. open_mpi.c prints
// the same of MPI's own; compare.sh puts them side by side.
//
//===----------------------------------------------------------------------===//

#include "collectives/Shm.h"
#include "collectives/ShmHost.h"
#include "device/Futex.h"
#include <algorithm>
#include <cstdio>
#include <sys/wait.h>

using namespace fsdprt;

static constexpr uint64_t mebibyte = 1 << 20, sizes[] = {1, 4, 16, 64, 256};
static constexpr double secondsPerCase = 0.4;

static double bestSeconds(Communicator &communicator, uint32_t collective, uint32_t rank, const Arena &arena,
                          uint64_t bytes, WorkerPool &pool) {
  bool gathers = communicator.getKey(collective).kind == fb::CollectiveKind::all_gather;
  const std::byte *source = arena.at(gathers ? rank * bytes / 2 : 0);
  std::byte *target = arena.at(gathers ? 0 : 256 * mebibyte);
  double best = 1e9;
  // As many rounds on both sides.
  uint64_t rounds = std::max<uint64_t>(5, static_cast<uint64_t>(secondsPerCase * 4e9 / static_cast<double>(bytes)));
  for (uint64_t round = 0; round < std::min<uint64_t>(rounds, 400); ++round) {
    communicator.barrier();
    double start = monotonicSeconds();
    communicator.start(collective, rank, source, target);
    communicator.wait(collective, rank, pool);
    best = std::min(best, monotonicSeconds() - start);
  }
  return best;
}

static void measure(ShmHost &host, uint32_t rank) {
  uint8_t artifact[32] = {};
  ShmCommunicator communicator(Mesh({{"shard", 2}}), rank, host.takeEndOf(rank), artifact, 60, spinsFor(2));
  constexpr fb::CollectiveKind kinds[] = {fb::CollectiveKind::all_gather, fb::CollectiveKind::reduce_scatter};
  for (fb::CollectiveKind kind : kinds)
    for (uint64_t size : sizes)
      communicator.add({kind, fb::Reduction::sum, DType::f32, size * mebibyte / 4 / 2, 0, {0},
                        static_cast<uint32_t>(communicator.numCollectives()), "", ""});
  Arena arena(384 * mebibyte, Arena::Kind::shared);
  arena.prefault();
  communicator.registerArena(rank, {arena.at(0), arena.mappedBytes(), arena.descriptor()});
  communicator.connect();
  WorkerPool pool(1, 0);
  for (uint32_t c = 0; c < communicator.numCollectives(); ++c) {
    uint64_t bytes = sizes[c % std::size(sizes)] * mebibyte;
    double seconds = bestSeconds(communicator, c, rank, arena, bytes, pool);
    if (rank == 0)
      std::printf("%s %llu %.3f\n", fb::EnumNameCollectiveKind(communicator.getKey(c).kind),
                  static_cast<unsigned long long>(bytes / mebibyte), static_cast<double>(bytes) / seconds * 1e-9);
  }
  communicator.leave();
}

int main() {
  ShmHost host(2, 16);
  pid_t children[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0)
      continue;
    try {
      measure(host, rank);
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
