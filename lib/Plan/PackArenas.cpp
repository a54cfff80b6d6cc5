//===- PackArenas.cpp - Offsets of all buffers ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   | states, block, rank, inputs | step's buffers  ......... |
//   |          (in order)         | eval's buffers ....       |   the same bytes
//   0                             base                        arena_bytes
//
// 1. Place the buffers that belong to no program one after another.
// 2. For each program, pack its buffers by lifetime (Analysis/Packing.cpp).
// 3. The arena ends where the last of its buffers ends. A lower bound of its size is the sum of the
//    sizes of the buffers of step 1, plus the largest number of bytes that are alive at the same
//    time in a program.
// 4. Pack the buffers of the host in a separate arena, also by steps 1 to 3. Place the buffers of
//    the rank's file one after another, each at a page boundary.
//
// After kernels are compiled, their workspace is added after the last buffer (AddWorkspace.cpp).
//
//===----------------------------------------------------------------------===//

#include "PackArenas.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PACKARENASPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ArenaSize {
  int64_t bytes = 0, lowerBound = 0;
};
} // namespace

/// Places the buffers that belong to no program (step 1).
ArenaFront fsdp::packFront(ArrayRef<BufferOp> arena,
                           llvm::function_ref<void(BufferOp, int64_t)> place) {
  ArenaFront front;
  int64_t alignment = bufferAlignment;
  for (BufferOp buffer : arena) {
    int64_t bytes = buffer.getBytes();
    if (!buffer.isPersistent()) {
      alignment = std::max(alignment, getBufferAlignment(bytes));
      continue;
    }
    int64_t offset = llvm::alignTo(front.end, getBufferAlignment(bytes));
    place(buffer, offset);
    front.end = offset + llvm::alignTo(bytes, bufferAlignment);
    front.bytes += llvm::alignTo(bytes, bufferAlignment);
  }
  front.base = llvm::alignTo(front.end, alignment);
  return front;
}

int64_t fsdp::measureArena(LayoutOp layout, StringAttr program,
                           const llvm::MapVector<StringAttr, Lifetime> &lifetimes, int64_t enough) {
  SmallVector<BufferOp> arena;
  SmallVector<Interval> intervals;
  for (auto buffer : layout.getOps<BufferOp>()) {
    if (getMemory(buffer) != Memory::device)
      continue;
    arena.push_back(buffer);
    auto lifetime = lifetimes.find(buffer.getSymNameAttr());
    if (!buffer.isPersistent() && buffer.getProgramAttr().getAttr() == program &&
        lifetime != lifetimes.end())
      intervals.push_back(
          {static_cast<int64_t>(buffer.getBytes()), lifetime->second.first, lifetime->second.last});
  }
  ArenaFront front = packFront(arena, [](BufferOp, int64_t) {});
  int64_t packed = packIntervals(intervals, std::max<int64_t>(1, enough - front.base)).bytes;
  return packed == 0 ? front.end : front.base + packed;
}

/// Chooses the offsets of the buffers of one arena (steps 1 to 3 of the file header).
static ArenaSize pack(ArrayRef<BufferOp> arena, int64_t enough) {
  auto place = [](BufferOp buffer, int64_t offset) {
    buffer.setOffsetAttr(Builder(buffer.getContext()).getI64IntegerAttr(offset));
  };
  ArenaFront front = packFront(arena, place);
  llvm::MapVector<StringAttr, SmallVector<BufferOp>> programs;
  for (BufferOp buffer : arena)
    if (!buffer.isPersistent())
      programs[buffer.getProgramAttr().getAttr()].push_back(buffer);
  int64_t packed = 0, bound = 0;
  for (auto &[program, buffers] : programs) {
    SmallVector<Interval> intervals;
    for (BufferOp buffer : buffers)
      intervals.push_back({static_cast<int64_t>(buffer.getBytes()),
                           static_cast<int64_t>(*buffer.getFirst()),
                           static_cast<int64_t>(*buffer.getLast())});
    Packing packing =
        packIntervals(intervals, enough > 0 ? std::max<int64_t>(1, enough - front.base) : 0);
    for (auto [buffer, offset] : llvm::zip_equal(buffers, packing.offsets))
      place(buffer, front.base + offset);
    packed = std::max(packed, packing.bytes);
    bound = std::max(bound, packing.lowerBound);
  }
  return {packed == 0 ? front.end : front.base + packed, front.bytes + bound};
}

/// Places the buffers of the rank's file one after another. Returns the size of the file in bytes.
static int64_t packFile(ArrayRef<BufferOp> buffers) {
  int64_t end = 0;
  for (BufferOp buffer : buffers) {
    buffer.setOffsetAttr(Builder(buffer.getContext()).getI64IntegerAttr(end));
    end = llvm::alignTo(end + buffer.getBytes(), pageAlignment);
  }
  return end;
}

namespace {

class PackArenasPass : public fsdp::impl::PackArenasPassBase<PackArenasPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto layout : getOperation().getOps<LayoutOp>()) {
      SmallVector<BufferOp> device, host, file;
      for (auto buffer : layout.getOps<BufferOp>()) {
        Memory memory = getMemory(buffer);
        (memory == Memory::device ? device
         : memory == Memory::host ? host
                                  : file)
            .push_back(buffer);
      }
      ArenaSize arena = pack(device, enough);
      if (arena.bytes == 0) {
        layout.emitOpError("has no bytes; expected at least one state or input");
        return signalPassFailure();
      }
      layout.setArenaBytes(arena.bytes);
      layout.setLowerBound(arena.lowerBound);
      pack(host, /*enough=*/0);
      int64_t hostEnd = 0;
      for (BufferOp buffer : host)
        hostEnd = std::max(hostEnd, static_cast<int64_t>(*buffer.getOffset() + buffer.getBytes()));
      layout.setHostBytes(hostEnd);
      if (int64_t bytes = packFile(file))
        layout->setAttr(fileBytesAttr, Builder(&getContext()).getI64IntegerAttr(bytes));
      if (static_cast<int64_t>(arenaBytes) < arena.bytes) {
        arenaBytes = arena.bytes;
        boundBytes = arena.lowerBound;
      }
    }
  }
};

} // namespace
