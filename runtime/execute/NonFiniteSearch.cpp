//===- NonFiniteSearch.cpp - Find the origin of a non-finite number -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/NonFiniteSearch.h"
#include "core/DType.h"
#include "execute/RankGroup.h"
#include <algorithm>
#include <cmath>

using namespace fsdprt;

static constexpr uint64_t chunkBytes = uint64_t(1) << 20;

static bool isFinite(DType type, const std::byte *from, uint64_t bytes) {
  bool finite = true;
  for (uint64_t at = 0, each = sizeOf(type); at + each <= bytes; at += each)
    finite &= std::isfinite(loadElement(type, from + at));
  return finite;
}

static bool holdsFinite(const RankRun &run, DType type, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> chunk(std::min(bytes, chunkBytes));
  bool finite = true;
  for (uint64_t done = 0; done < bytes && finite; done += chunk.size()) {
    uint64_t part = std::min<uint64_t>(chunk.size(), bytes - done);
    run.executor->read(offset + done, chunk.data(), part);
    finite = isFinite(type, chunk.data(), part);
  }
  return finite;
}

void NonFiniteSearch::beforeReduction(const RankRun &run, const Instruction &instruction,
                                      uint64_t source) {
  const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
  const Instruction *&first = found[run.rank - firstRank];
  if (!first && !holdsFinite(run, collective.dtype(), source, collective.source()->bytes()))
    first = &instruction;
}

NonFiniteSource NonFiniteSearch::result() const {
  NonFiniteSource source;
  for (uint32_t i = 0; i < found.size(); ++i) {
    if (!found[i] || found[i]->number > source.number)
      continue;
    if (found[i]->number < source.number)
      source = {found[i]->number, found[i]->collective, 0, firstRank + i};
    ++source.ranks;
  }
  return source;
}
