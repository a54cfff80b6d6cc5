//===- KernelImage.cpp - Scratch sizes of kernels in a module ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/KernelImage.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringLiteral scratchAttr = "fsdp.kernel_scratch";

void fsdp::setKernelScratch(ModuleOp module, ArrayRef<KernelInfo> kernels) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> scratch;
  for (const KernelInfo &kernel : kernels)
    scratch.push_back(builder.getNamedAttr(
        kernel.name, builder.getDenseI64ArrayAttr({kernel.sharedBytes, kernel.workerBytes})));
  module->setAttr(scratchAttr, builder.getDictionaryAttr(scratch));
}

KernelScratch fsdp::getKernelScratch(ModuleOp module, StringRef kernel) {
  auto all = module->getAttrOfType<DictionaryAttr>(scratchAttr);
  auto bytes = all ? all.getAs<DenseI64ArrayAttr>(kernel) : nullptr;
  return bytes && bytes.size() == 2 ? KernelScratch{bytes[0], bytes[1]} : KernelScratch();
}
