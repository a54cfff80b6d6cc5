//===- Copies.cpp - Commands without kernels --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executes copies, fills and initialisations in arenas and in the rank's file of states:
//
//     copy in or between the arenas   executed by the device, concurrently if on a channel
//     copy from or to the file        executed by the rank's thread, or by the file worker if the
//                                     copy is on a channel and there is no GPU
//
// If the host can address the arena, copies from and to the file access the arena directly. Zeros
// and initial values are first written to a buffer, and then from the buffer to the file.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "artifact/ParamSlice.h"
#include "core/Initialise.h"
#include "core/Philox.h"
#include "execute/RankExecutor.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;

static constexpr uint64_t chunkBytes = uint64_t(1) << 20;

AsyncTransferWorker *RankExecutor::workerOf(TransferKind transferKind) const {
  switch (transferKind) {
  case TransferKind::collectives:
    return transferWorker.get();
  case TransferKind::file:
    return fileWorker.get();
  case TransferKind::copies:
    return nullptr;
  }
  return nullptr;
}

RankExecutor::AsyncCopy RankExecutor::copyOf(const Instruction &instruction,
                                             uint64_t iteration) const {
  const auto &copy = *static_cast<const fb::Copy *>(instruction.body);
  AsyncCopy transfer;
  transfer.bytes = copy.source()->bytes();
  transfer.label = instruction.label;
  uint64_t from = offsetOf(*copy.source(), iteration), to = offsetOf(*copy.target(), iteration);
  if (isInFile(layout, from))
    transfer.offset = from - fileBegin(layout);
  else
    transfer.from = arena.at(from);
  transfer.isVisible =
      (!transfer.from || isHostVisible(from)) && (isInFile(layout, to) || isHostVisible(to));
  if (isInFile(layout, to))
    transfer.offset = to - fileBegin(layout);
  else
    transfer.to = arena.at(to);
  return transfer;
}

/// Copies between the rank's file and GPU memory, if the host cannot address this memory. Passes
/// the data through the buffer `chunk`.
void RankExecutor::performInChunks(const AsyncCopy &transfer) {
  for (uint64_t done = 0, part; done < transfer.bytes; done += part) {
    part = std::min<uint64_t>(chunk.size(), transfer.bytes - done);
    if (transfer.from)
      device->read(chunk.data(), transfer.from + done, part);
    else
      file->read(transfer.offset + done, chunk.data(), part);
    if (transfer.to)
      device->write(transfer.to + done, chunk.data(), part);
    else
      file->write(transfer.offset + done, chunk.data(), part);
  }
}

void RankExecutor::perform(const AsyncCopy &transfer) {
  try {
    if (!transfer.isVisible)
      performInChunks(transfer);
    else if (transfer.to)
      file->read(transfer.offset, transfer.to, transfer.bytes);
    else
      file->write(transfer.offset, transfer.from, transfer.bytes);
  } catch (const Error &error) {
    throw Error(error.status, "copy " + printable(transfer.label) + ": " + error.what());
  }
}

void RankExecutor::fill(const fb::Slice &target, uint64_t iteration) {
  uint64_t offset = offsetOf(target, iteration);
  if (isOnDevice(layout, offset))
    return device->fill(arena.at(offset), target.bytes());
  finishDevice();
  if (!isInFile(layout, offset)) {
    std::memset(arena.at(offset), 0, target.bytes());
    return;
  }
  std::vector<std::byte> zeros(std::min<uint64_t>(target.bytes(), chunkBytes));
  for (uint64_t done = 0; done < target.bytes(); done += zeros.size())
    file->write(offset - fileBegin(layout) + done, zeros.data(),
                std::min<uint64_t>(zeros.size(), target.bytes() - done));
}

void RankExecutor::copy(const Instruction &instruction, uint64_t iteration) {
  AsyncCopy transfer = copyOf(instruction, iteration);
  if (transfer.from && transfer.to)
    return device->copy(transfer.to, transfer.from, transfer.bytes);
  finishDevice();
  perform(transfer);
}

void RankExecutor::startCopy(const Instruction &instruction, uint64_t iteration) {
  AsyncCopy transfer = copyOf(instruction, iteration);
  if (transfer.from && transfer.to)
    return device->startCopy(instruction.collective, transfer.to, transfer.from, transfer.bytes);
  finishDevice();
  transfers[instruction.collective] = transfer;
  if (fileWorker)
    fileWorker->post(instruction.collective);
  else
    perform(transfer);
}

/// Writes the initial values of those elements of a parameter that are in this rank's shard, or in
/// all slices of the reference.
void RankExecutor::initialise(const fb::Initialise &initialise) {
  const fb::State &state = *layout.states()->Get(initialise.state());
  uint64_t slices = context.artifact.slicesIn(state);
  if (slices == 1)
    return initialiseSlice(initialise, ParamSlice::coordinateOf(context.mesh, rank), 0);
  for (uint64_t slice = 0; slice < slices; ++slice)
    initialiseSlice(initialise, slice, slice * (state.elements() / slices));
}

/// Writes the initial values of a slice of a parameter. The flat buffer of the slices with its
/// coordinate, or the rank's shard of it, begins at element `first` of the state.
void RankExecutor::initialiseSlice(const fb::Initialise &initialise, uint64_t coordinate,
                                   uint64_t first) {
  const fb::State &state = *layout.states()->Get(initialise.state());
  const fb::Param &param = *context.artifact.manifest().params()->Get(initialise.param());
  const ParamSlice slice(param, context.artifact.getMesh());
  uint64_t size = sizeOf(state.dtype()), held = firstElement(context.mesh, state, rank);
  uint64_t elements = state.elements() / context.artifact.slicesIn(state);
  uint64_t begin = std::max(param.offset(), held),
           end = std::min(param.offset() + slice.elements(), held + elements);
  if (begin >= end)
    return;
  Distribution distribution = {param.init(), param.a(), param.b()};
  const fb::Value *value = param.value();
  StoredValues stored = {};
  if (value)
    stored = {context.artifact.values(*value), value->dtype(),
              value->bytes() == sizeOf(value->dtype())};
  uint64_t stream = streamOf(param.name()->c_str());
  // Writes the initial values of elements [from, from + count) of the rank's slice to `to`, with
  // all threads of the rank.
  auto generate = [&](uint64_t from, uint64_t count, std::byte *to) {
    pool.run([&](uint32_t worker) {
      uint64_t first, last;
      WorkerPool::split(count, 4096, pool.size(), worker, first, last);
      if (first >= last)
        return;
      slice.forSlice(coordinate, from + first, last - first,
                     [&](uint64_t index, uint64_t held, uint64_t length) {
                       std::byte *target = to + (held - from) * size;
                       if (value)
                         storedValues(stored, index, length, state.dtype(), target);
                       else
                         initialValues(distribution, context.options.seed, stream, index, length,
                                       state.dtype(), target);
                     });
    });
  };
  if (std::byte *memory = memoryOf(state))
    return generate(begin - param.offset(), end - begin, memory + (first + begin - held) * size);
  std::vector<std::byte> part(std::min<uint64_t>((end - begin) * size, chunkBytes));
  for (uint64_t at = begin; at < end; at += part.size() / size) {
    uint64_t count = std::min<uint64_t>(part.size() / size, end - at);
    generate(at - param.offset(), count, part.data());
    writeState(state, (first + at - held) * size, count * size, part.data());
  }
}
