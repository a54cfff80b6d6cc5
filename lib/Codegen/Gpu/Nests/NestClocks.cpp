//===- NestClocks.cpp - Clocks of launches of loops -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Count the instructions, special functions and bytes of one thread. A loop repeats its body as
//     often as its constant bounds say; a loop from a thread's number on, as if it began at 0.
//  2. Of each binding, memory moves the bytes that all threads access, but at most its size. For
//     example, a lookup in a table reads only the rows that it needs. Bindings that fit the L1
//     cache are read once by each multiprocessor, others once for each access.
//
// Code that a single thread of many executes is not counted.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/OpWork.h"
#include "NestEntries.h"
#include "fsdp/Analysis/Gpu/GpuClocks.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Sizes in bytes: of what stays in the caches, and of what a thread moves at once.
static constexpr double firstCacheBytes = 64 << 10, secondCacheBytes = 32 << 20, wideBytes = 16;

namespace {
/// Bytes that a thread reads from and writes to one memref.
struct Accessed {
  double read = 0, written = 0;
};

class ThreadCounter {
public:
  void count(Region &region, double times);

  OpWork work;
  double sharedBytes = 0;
  llvm::MapVector<Value, Accessed> accessed; ///< by argument of the entry

private:
  void countLoop(scf::ForOp loop, double times);
  void countIf(scf::IfOp op, double times);
  void access(Value memref, double times, bool writes);
};
} // namespace

static std::optional<int64_t> constantOf(Value value) { return getConstantIntValue(value); }

void ThreadCounter::countLoop(scf::ForOp loop, double times) {
  std::optional<int64_t> from = constantOf(loop.getLowerBound()),
                         to = constantOf(loop.getUpperBound()), step = constantOf(loop.getStep());
  int64_t trips = to && step && *step > 0
                      ? llvm::divideCeil(std::max<int64_t>(*to - from.value_or(0), 0), *step)
                      : 1;
  if (auto most = loop->getAttrOfType<IntegerAttr>(tripsAttr))
    trips = most.getInt();
  count(loop.getRegion(), times * static_cast<double>(trips));
}

void ThreadCounter::countIf(scf::IfOp op, double times) {
  auto comparison = op.getCondition().getDefiningOp<arith::CmpIOp>();
  bool isRare = comparison && comparison.getPredicate() == arith::CmpIPredicate::eq;
  if (!isRare)
    count(op.getThenRegion(), times);
  count(op.getElseRegion(), times);
}

void ThreadCounter::access(Value memref, double times, bool writes) {
  auto type = cast<MemRefType>(memref.getType());
  double bytes = times * std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  work.issue += bytes / wideBytes;
  while (Operation *view = memref.getDefiningOp()) {
    if (!isa<ViewLikeOpInterface>(view)) { // a global in shared memory
      sharedBytes += bytes;
      return;
    }
    memref = view->getOperand(0);
  }
  (writes ? accessed[memref].written : accessed[memref].read) += bytes;
}

void ThreadCounter::count(Region &region, double times) {
  for (Operation &op : region.getOps()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      countLoop(loop, times);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      countIf(branch, times);
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      access(load.getMemRef(), times, /*writes=*/false);
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      access(store.getMemRef(), times, /*writes=*/true);
    } else {
      // Index arithmetic is mostly moved out of loops.
      bool isIndex = op.getNumResults() == 1 && op.getResult(0).getType().isIndex();
      OpWork own = isIndex ? OpWork() : workOf(op);
      work += {own.issue * times, own.special * times};
      for (Region &inner : op.getRegions())
        count(inner, times);
    }
  }
}

GpuCost fsdp::costOfNestEntry(func::FuncOp entry, int64_t blocks, int64_t threads,
                              const GpuTarget &target) {
  ThreadCounter counter;
  counter.count(entry.getBody(), 1);
  double all = static_cast<double>(blocks * threads),
         multiprocessors = static_cast<double>(target.multiprocessors), bytes = 0, cached = 0;
  for (auto &[memref, own] : counter.accessed) {
    auto type = cast<MemRefType>(memref.getType());
    double size = type.hasStaticShape() ? type.getNumElements() *
                                              std::max<double>(type.getElementTypeBitWidth() / 8, 1)
                                        : 0;
    for (double accessed : {own.read * all, own.written * all}) {
      cached += size > 0 && size <= firstCacheBytes ? std::min(accessed, size * multiprocessors)
                                                    : accessed;
      // Scratch is read soon after it is written.
      bytes += size > 0 ? std::min(accessed, size) : accessed > secondCacheBytes ? accessed : 0;
    }
  }
  GpuClocks thread{0, counter.work.issue, counter.work.special, counter.sharedBytes, cached / all};
  return getStreamCost(blocks, threads, thread, GpuRates::get(target.chip), target.multiprocessors,
                       bytes);
}
