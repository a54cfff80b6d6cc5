//===- NestEntries.cpp - Entries made of functions on memrefs ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See NestEntries.h.
//
//===----------------------------------------------------------------------===//

#include "NestEntries.h"
#include "Codegen/Kernel/Lowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringLiteral threadsAttr = "fsdp.threads", writtenAttr = "fsdp.written";

void fsdp::describeNestEntry(func::FuncOp entry, func::FuncOp kernel, int64_t threads) {
  Builder b(entry.getContext());
  SmallVector<bool> written;
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    written.push_back(i >= kernel.getNumArguments() || kernel.getArgAttr(i, outAttr) ||
                      kernel.getArgAttr(i, inoutAttr));
  entry->setAttr(threadsAttr, b.getI32IntegerAttr(threads));
  entry->setAttr(writtenAttr, b.getDenseBoolArrayAttr(written));
}

void fsdp::makeNestEntries(ModuleOp entries) {
  Builder b(entries.getContext());
  for (auto entry : entries.getOps<LLVM::LLVMFuncOp>()) {
    auto threads = dyn_cast_or_null<IntegerAttr>(entry->removeAttr(threadsAttr));
    if (!threads)
      continue;
    entry->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
    entry->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                   b.getDenseI32ArrayAttr({static_cast<int32_t>(threads.getInt()), 1, 1}));
    auto written = cast<DenseBoolArrayAttr>(entry->removeAttr(writtenAttr));
    for (auto [i, isWritten] : llvm::enumerate(written.asArrayRef())) {
      constexpr int64_t bindingAlignment = 64;
      entry.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
      entry.setArgAttr(i, LLVM::LLVMDialect::getNoUndefAttrName(), b.getUnitAttr());
      entry.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                       b.getI64IntegerAttr(bindingAlignment));
      if (!isWritten)
        entry.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
    }
  }
}
