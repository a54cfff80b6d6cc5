//===- AddWorkspace.cpp - Workspace of kernels in the arena -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. For each layout, find the kernels that its programs launch.
// 2. The size of the shared workspace is the largest size that one of these kernels needs. Each
//    worker also has a workspace of its own. Its size is the largest size that one of these kernels
//    needs per worker.
// 3. The workspace begins at the first page after the last buffer of the device.
//
// Takes O(programs · commands + buffers) time.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/KernelImage.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/Plan/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDWORKSPACEPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the kernels that the programs over `layout` launch.
static llvm::StringSet<> getKernels(ModuleOp module, LayoutOp layout) {
  llvm::StringSet<> names;
  for (auto program : module.getOps<ProgramOp>())
    if (program.getLayout() == layout.getSymName())
      program.walk([&](LaunchOp launch) { names.insert(launch.getKernel()); });
  return names;
}

/// Returns the end of the last device buffer of a layout.
static int64_t getEnd(LayoutOp layout) {
  int64_t end = 0;
  for (auto buffer : layout.getOps<BufferOp>())
    if (getMemory(buffer) == Memory::device)
      end = std::max(end, static_cast<int64_t>(*buffer.getOffset() + buffer.getBytes()));
  return llvm::alignTo(end, bufferAlignment);
}

namespace {
struct AddWorkspacePass : fsdp::impl::AddWorkspacePassBase<AddWorkspacePass> {
  using AddWorkspacePassBase::AddWorkspacePassBase;

  void runOnOperation() override {
    for (auto layout : getOperation().getOps<LayoutOp>())
      addTo(layout);
  }

  void addTo(LayoutOp layout) {
    KernelScratch most;
    for (const auto &kernel : getKernels(getOperation(), layout)) {
      KernelScratch scratch = getKernelScratch(getOperation(), kernel.getKey());
      most.shared = std::max<int64_t>(most.shared, llvm::alignTo(scratch.shared, bufferAlignment));
      most.worker = std::max<int64_t>(most.worker, llvm::alignTo(scratch.worker, bufferAlignment));
    }
    int64_t bytes = most.shared + threadsPerRank * most.worker;
    int64_t offset = llvm::alignTo(getEnd(layout), bytes ? pageAlignment : bufferAlignment);
    layout.setWorkspaceOffset(offset);
    layout.setSharedBytes(most.shared);
    layout.setWorkerBytes(most.worker);
    layout.setWorkers(threadsPerRank);
    layout.setArenaBytes(offset + bytes);
    workspaceBytes = std::max<unsigned>(workspaceBytes, bytes);
  }
};
} // namespace
