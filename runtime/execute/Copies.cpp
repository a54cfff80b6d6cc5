//===- Copies.cpp - What commands move without a kernel ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies, fills and initial values, in the arenas and in the rank's file.
//
//   copy in an arena, or between the two    done by all workers, or by the copy worker where it is
//   on a
//                                           channel; by a GPU on a stream
//   copy from the file or to it             done by the rank, or by the file worker where it is on
//   a
//                                           channel; with a GPU always by the rank
//
// What is written to the file in steps comes from an arena; zeros and initial values go through a
// buffer.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "core/Initialise.h"
#include "core/Philox.h"
#include "execute/RankGroup.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

static constexpr uint64_t chunkBytes = uint64_t(1) << 20; // of that buffer

AsyncTransferWorker *RankGroup::workerOf(const Rank &rank, TransferKind transferKind) const {
  switch (transferKind) {
  case TransferKind::collectives:
    return rank.transferWorker.get();
  case TransferKind::file:
    return rank.fileWorker.get();
  case TransferKind::copies: // the device's own
    return nullptr;
  }
  return nullptr;
}

RankGroup::AsyncCopy RankGroup::copyOf(uint32_t index, const fb::Copy &copy, uint64_t iteration,
                                       const char *label) const {
  AsyncCopy transfer;
  transfer.bytes = copy.source()->bytes();
  transfer.label = label;
  uint64_t from = offsetOf(index, *copy.source(), iteration),
           to = offsetOf(index, *copy.target(), iteration);
  if (isInFile(layout, from))
    transfer.offset = from - fileBegin(layout);
  else
    transfer.from = rankState(index).arena.at(from);
  if (isInFile(layout, to))
    transfer.offset = to - fileBegin(layout);
  else
    transfer.to = rankState(index).arena.at(to);
  return transfer;
}

/// Between the file and memory that only the GPU sees.
void RankGroup::performInChunks(Rank &rank, const AsyncCopy &transfer) {
  std::byte *chunk = rank.chunk.data();
  for (uint64_t done = 0, part; done < transfer.bytes; done += part) {
    part = std::min<uint64_t>(rank.chunk.size(), transfer.bytes - done);
    if (transfer.from)
      rank.device->read(chunk, transfer.from + done, part);
    else
      rank.file->read(transfer.offset + done, chunk, part);
    if (transfer.to)
      rank.device->write(transfer.to + done, chunk, part);
    else
      rank.file->write(transfer.offset + done, chunk, part);
  }
}

/// Copies from the file or to it.
void RankGroup::perform(Rank &rank, const AsyncCopy &transfer) {
  try {
    if (!rank.device->isHostVisible())
      performInChunks(rank, transfer);
    else if (transfer.to)
      rank.file->read(transfer.offset, transfer.to, transfer.bytes);
    else
      rank.file->write(transfer.offset, transfer.from, transfer.bytes);
  } catch (const Error &error) {
    throw Error(error.status, "copy " + printable(transfer.label, std::strlen(transfer.label)) +
                                  ": " + error.what());
  }
}

void RankGroup::fill(uint32_t index, const fb::Slice &target, uint64_t iteration) {
  uint64_t offset = offsetOf(index, target, iteration);
  Rank &rank = rankState(index);
  if (isOnDevice(layout, offset))
    return rank.device->fill(rank.arena.at(offset), target.bytes());
  finishDevice(rank);
  if (!isInFile(layout, offset)) {
    std::memset(rank.arena.at(offset), 0, target.bytes());
    return;
  }
  std::vector<std::byte> zeros(std::min<uint64_t>(target.bytes(), chunkBytes));
  for (uint64_t done = 0; done < target.bytes(); done += zeros.size())
    rank.file->write(offset - fileBegin(layout) + done, zeros.data(),
                     std::min<uint64_t>(zeros.size(), target.bytes() - done));
}

void RankGroup::copy(uint32_t index, const Instruction &instruction, uint64_t iteration) {
  Rank &rank = rankState(index);
  AsyncCopy transfer =
      copyOf(index, *static_cast<const fb::Copy *>(instruction.body), iteration, instruction.label);
  if (transfer.from && transfer.to)
    return rank.device->copy(transfer.to, transfer.from, transfer.bytes);
  finishDevice(rank);
  perform(rank, transfer);
}

/// Its wait ends it.
void RankGroup::startCopy(uint32_t index, const Instruction &instruction, uint64_t iteration) {
  const auto &copy = *static_cast<const fb::Copy *>(instruction.body);
  Rank &rank = rankState(index);
  AsyncCopy transfer = copyOf(index, copy, iteration, instruction.label);
  if (transfer.from && transfer.to)
    return rank.device->startCopy(instruction.collective, transfer.to, transfer.from,
                                  transfer.bytes);
  finishDevice(rank);
  rank.transfers[instruction.collective] = transfer;
  if (rank.fileWorker)
    rank.fileWorker->post(instruction.collective);
  else
    perform(rank, transfer);
}

/// The part of the parameter that this rank's shard covers.
void RankGroup::initialise(uint32_t index, const fb::Initialise &initialise) {
  const fb::State &state = *layout.states()->Get(initialise.state());
  const fb::Param &param = *artifact.manifest().params()->Get(initialise.param());
  uint64_t elements = 1;
  for (uint32_t i = 0; param.shape() && i < param.shape()->size(); ++i)
    elements *= param.shape()->Get(i);
  uint64_t held = firstElement(state, index);
  uint64_t begin = std::max(param.offset(), held),
           end = std::min(param.offset() + elements, held + state.elements());
  if (begin >= end)
    return;
  Distribution distribution = {param.init(), param.a(), param.b()};
  const fb::Value *value = param.value();
  StoredValues stored = {};
  if (value)
    stored = {artifact.values(*value), value->dtype(), value->bytes() == sizeOf(value->dtype())};
  uint64_t stream = streamOf(param.name()->c_str()), size = sizeOf(state.dtype());
  /// Elements [from, from + count) of the parameter, by all threads of the rank.
  auto generate = [&](uint64_t from, uint64_t count, std::byte *to) {
    WorkerPool &pool = rankState(index).pool;
    pool.run([&](uint32_t worker) {
      uint64_t first, last;
      WorkerPool::split(count, 4096, pool.size(), worker, first, last);
      if (first >= last)
        return;
      if (value)
        storedValues(stored, from + first, last - first, state.dtype(), to + first * size);
      else
        initialValues(distribution, options.seed, stream, from + first, last - first, state.dtype(),
                      to + first * size);
    });
  };
  if (std::byte *memory = memoryOf(index, state))
    return generate(begin - param.offset(), end - begin, memory + (begin - held) * size);
  std::vector<std::byte> chunk(std::min<uint64_t>((end - begin) * size, chunkBytes));
  for (uint64_t at = begin; at < end; at += chunk.size() / size) {
    uint64_t count = std::min<uint64_t>(chunk.size() / size, end - at);
    generate(at - param.offset(), count, chunk.data());
    writeState(index, state, (at - held) * size, count * size, chunk.data());
  }
}
