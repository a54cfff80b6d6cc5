//===- HostAccess.cpp - Access of the host to ranks' arenas ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads and writes step blocks, rank blocks and states outside of programs. If the host cannot
// address the memory of the device, the device copies the data from or to host memory.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "execute/RankExecutor.h"
#include <cstring>

using namespace fsdprt;

bool RankExecutor::isHostVisible(uint64_t offset) const {
  return device->isHostVisible() || isOnHost(layout, offset);
}

void RankExecutor::read(uint64_t offset, void *to, uint64_t bytes) const {
  if (isHostVisible(offset))
    std::memcpy(to, arena.at(offset), bytes);
  else
    device->read(to, arena.at(offset), bytes);
}

void RankExecutor::write(uint64_t offset, const void *from, uint64_t bytes) const {
  if (isHostVisible(offset))
    std::memcpy(arena.at(offset), from, bytes);
  else
    device->write(arena.at(offset), from, bytes);
}

void RankExecutor::prepare() {
  arena.prefault();
  float block[FSDPRT_BLOCK_SIZE];
  read(layout.block()->offset(), block, sizeof block);
  block[FSDPRT_BLOCK_CLIP] = block[FSDPRT_BLOCK_FINITE] = 1;
  write(layout.block()->offset(), block, sizeof block);
  if (!layout.rank() || layout.rank()->bytes() == 0)
    return;
  int64_t place[] = {rank, static_cast<int64_t>(context.mesh.indexOn("shard", rank)),
                     static_cast<int64_t>(context.mesh.indexOn("replicate", rank)), 0,
                     static_cast<int64_t>(context.options.seed)};
  write(layout.rank()->offset(), place, (layout.rank()->bytes() >= 64 ? 5 : 4) * sizeof place[0]);
}

/// Writes the number of all steps so far, applied or skipped, to the rank block. The random numbers
/// of the next step depend on this number.
void RankExecutor::numberStep() const {
  if (!layout.rank() || layout.rank()->bytes() < 64)
    return;
  float block[FSDPRT_BLOCK_SIZE];
  read(layout.block()->offset(), block, sizeof block);
  float steps = block[FSDPRT_BLOCK_STEP] + block[FSDPRT_BLOCK_SKIPPED];
  // If `steps` is NaN, `number` is 0.
  int64_t number = steps >= 0 && steps < 0x1p53f ? static_cast<int64_t>(steps) : 0;
  write(layout.rank()->offset() + 5 * sizeof number, &number, sizeof number);
}

std::byte *RankExecutor::memoryOf(const fb::State &state) const {
  bool isThere = !isInFile(layout, state.offset()) && isHostVisible(state.offset());
  return isThere ? arena.at(state.offset()) : nullptr;
}

void RankExecutor::readState(const fb::State &state, uint64_t first, uint64_t bytes,
                             void *to) const {
  if (isInFile(layout, state.offset()))
    file->read(state.offset() - fileBegin(layout) + first, to, bytes);
  else
    read(state.offset() + first, to, bytes);
}

void RankExecutor::writeState(const fb::State &state, uint64_t first, uint64_t bytes,
                              const void *from) const {
  if (isInFile(layout, state.offset()))
    file->write(state.offset() - fileBegin(layout) + first, from, bytes);
  else
    write(state.offset() + first, from, bytes);
}
