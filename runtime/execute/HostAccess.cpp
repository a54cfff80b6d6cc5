//===- HostAccess.cpp - What the host does in ranks' arenas ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The blocks of a rank and of its step, states, numbers that are not finite. Where the host has the
// device in its address space that is memory like any other; else the device reads and writes it.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "execute/RankGroup.h"
#include <cmath>
#include <cstring>

using namespace fsdprt;

static constexpr uint64_t chunkBytes = uint64_t(1) << 20;

bool RankGroup::isHostVisible(const Rank &rank, uint64_t offset) const {
  return rank.device->isHostVisible() || isOnHost(layout, offset);
}

void RankGroup::read(uint32_t rank, uint64_t offset, void *to, uint64_t bytes) const {
  const Rank &of = rankState(rank);
  if (isHostVisible(of, offset))
    std::memcpy(to, of.arena.at(offset), bytes);
  else
    of.device->read(to, of.arena.at(offset), bytes);
}

void RankGroup::write(uint32_t rank, uint64_t offset, const void *from, uint64_t bytes) const {
  const Rank &of = rankState(rank);
  if (isHostVisible(of, offset))
    std::memcpy(of.arena.at(offset), from, bytes);
  else
    of.device->write(of.arena.at(offset), from, bytes);
}

//===- Blocks -------------------------------------------------------------===//

/// Before the first program: memory, this rank's place, and neutral values in the step block.
void RankGroup::prepare(uint32_t rank) {
  rankState(rank).arena.prefault();
  float block[FSDPRT_BLOCK_SIZE];
  read(rank, layout.block()->offset(), block, sizeof block);
  block[FSDPRT_BLOCK_CLIP] = block[FSDPRT_BLOCK_FINITE] = 1;
  write(rank, layout.block()->offset(), block, sizeof block);
  if (!layout.rank() || layout.rank()->bytes() == 0)
    return;
  int64_t place[] = {rank, static_cast<int64_t>(mesh.indexOn("shard", rank)),
                     static_cast<int64_t>(mesh.indexOn("replicate", rank)), 0,
                     static_cast<int64_t>(options.seed)};
  write(rank, layout.rank()->offset(), place,
        (layout.rank()->bytes() >= 64 ? 5 : 4) * sizeof place[0]);
}

/// Tells a rank how many steps there were, applied or not: what random numbers of this one follow
/// from.
void RankGroup::numberStep(uint32_t rank) {
  if (!layout.rank() || layout.rank()->bytes() < 64)
    return;
  float block[FSDPRT_BLOCK_SIZE];
  read(rank, layout.block()->offset(), block, sizeof block);
  float steps = block[FSDPRT_BLOCK_STEP] + block[FSDPRT_BLOCK_SKIPPED];
  int64_t number =
      steps >= 0 && steps < 0x1p53f ? static_cast<int64_t>(steps) : 0; // not a number included
  write(rank, layout.rank()->offset() + 5 * sizeof number, &number, sizeof number);
}

//===- States, outside of programs ----------------------------------------===//

std::byte *RankGroup::memoryOf(uint32_t rank, const fb::State &state) const {
  bool isThere =
      !isInFile(layout, state.offset()) && isHostVisible(rankState(rank), state.offset());
  return isThere ? rankState(rank).arena.at(state.offset()) : nullptr;
}

void RankGroup::readState(uint32_t rank, const fb::State &state, uint64_t first, uint64_t bytes,
                          void *to) const {
  if (isInFile(layout, state.offset()))
    rankState(rank).file->read(state.offset() - fileBegin(layout) + first, to, bytes);
  else
    read(rank, state.offset() + first, to, bytes);
}

void RankGroup::writeState(uint32_t rank, const fb::State &state, uint64_t first, uint64_t bytes,
                           const void *from) const {
  if (isInFile(layout, state.offset()))
    rankState(rank).file->write(state.offset() - fileBegin(layout) + first, from, bytes);
  else
    write(rank, state.offset() + first, from, bytes);
}

//===- Numbers that are not finite ----------------------------------------===//

static bool isFinite(DType type, const std::byte *from, uint64_t bytes) {
  bool finite = true;
  for (uint64_t at = 0, each = sizeOf(type); at + each <= bytes; at += each)
    finite &= std::isfinite(loadElement(type, from + at));
  return finite;
}

bool RankGroup::holdsFinite(uint32_t rank, DType type, uint64_t offset, uint64_t bytes) const {
  if (isHostVisible(rankState(rank), offset))
    return isFinite(type, rankState(rank).arena.at(offset), bytes);
  std::vector<std::byte> chunk(std::min(bytes, chunkBytes));
  bool finite = true;
  for (uint64_t done = 0; done < bytes && finite; done += chunk.size()) {
    uint64_t part = std::min<uint64_t>(chunk.size(), bytes - done);
    read(rank, offset + done, chunk.data(), part);
    finite = isFinite(type, chunk.data(), part);
  }
  return finite;
}

/// Of a reduction, before its start: plants a number that is not finite, and looks for one.
void RankGroup::inspect(uint32_t rank, const Instruction &instruction, uint64_t source) {
  const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
  bool reduces = collective.kind() == fb::CollectiveKind::reduce_scatter ||
                 collective.kind() == fb::CollectiveKind::all_reduce;
  if (!reduces || !isFloat(collective.dtype()))
    return;
  if (options.fault.kind == RankFault::Kind::nan && std::strcmp(currentName, "step") == 0 &&
      options.fault.isAt(RankFault::Phase::reduce, rank, currentRun) &&
      instruction.collective == faultedCollective) {
    std::byte number[8];
    storeElement(collective.dtype(), NAN, number);
    write(rank, source, number, sizeOf(collective.dtype()));
  }
  if (searching && !rankState(rank).nonfinite &&
      !holdsFinite(rank, collective.dtype(), source, collective.source()->bytes()))
    rankState(rank).nonfinite = &instruction;
}
