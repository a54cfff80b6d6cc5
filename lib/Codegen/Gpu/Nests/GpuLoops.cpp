//===- GpuLoops.cpp - General lowering for GPUs -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers kernels that no other GPU lowering supports. Each phase of LoopKernels.cpp becomes a
// launch with one thread per element of the phase's range. The code is slow, but every kernel can
// be lowered in this way.
//
//===----------------------------------------------------------------------===//

#include "GpuLoops.h"
#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Kernel/Lowering.h"
#include "NestEntries.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t blockThreads = 64;

/// Replaces the range [begin, end) of a phase by the single element that belongs to the thread, and
/// erases the argument for the worker's scratch.
static void giveToThreads(func::FuncOp phase, func::FuncOp kernel, GpuLaunch &launch,
                          int64_t extent) {
  unsigned last = phase.getNumArguments() - 1;
  GpuBuilder b(phase.getLoc(), phase.getContext(), blockThreads);
  launch.threads = std::min<int64_t>(blockThreads, llvm::alignTo(extent, 32));
  launch.blocks = llvm::divideCeil(extent, launch.threads);
  b.setInsertionPointToStart(&phase.front());
  auto toIndex = [&](Value value) {
    return b.createOrFold<arith::IndexCastUIOp>(b.loc, b.getIndexType(), value);
  };
  Value begin = b.add(b.mul(toIndex(b.block()), launch.threads), toIndex(b.thread()));
  Value end = b.add(begin, 1), limit = arith::ConstantIndexOp::create(b, b.loc, extent);
  auto inside = scf::IfOp::create(b, b.loc, b.isLess(begin, limit), /*withElseRegion=*/false);
  Block *body = inside.thenBlock();
  Operation *yield = body->getTerminator();
  SmallVector<Operation *> moved;
  for (Operation &op :
       llvm::make_range(std::next(Block::iterator(inside)), std::prev(phase.front().end())))
    moved.push_back(&op);
  for (Operation *op : moved)
    op->moveBefore(yield);
  phase.getArgument(last - 2).replaceAllUsesWith(begin);
  phase.getArgument(last - 1).replaceAllUsesWith(end);
  for (unsigned i = 0; i < 3; ++i)
    (void)phase.eraseArgument(last - i);
  for (unsigned i = 0; i < phase.getNumArguments(); ++i)
    phase.setArgAttrs(i, ArrayRef<NamedAttribute>());
  describeNestEntry(phase, kernel, launch.threads);
}

LogicalResult fsdp::lowerGpuLoops(func::FuncOp work, func::FuncOp kernel, GpuKernel &info) {
  auto module = work->getParentOfType<ModuleOp>();
  KernelInfo phases = info.info;
  if (failed(lowerLoopKernel(work, phases)))
    return failure();
  info.scratchBytes = phases.sharedBytes;
  for (auto [number, phase] : llvm::enumerate(phases.phases)) {
    auto function = module.lookupSymbol<func::FuncOp>(phase.symbol);
    GpuLaunch &launch = info.launches.emplace_back();
    launch.symbol = info.info.name + "$" + std::to_string(number);
    function.setName(launch.symbol);
    giveToThreads(function, kernel, launch, phase.extent);
  }
  return success();
}
