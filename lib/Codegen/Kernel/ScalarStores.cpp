//===- ScalarStores.cpp - Masked stores of one lane -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites masked stores whose mask is a constant with one lane:
//
//   %t = trunc <16 x i32> %v to <16 x i16>             %t = trunc <16 x i32> %v to <16 x i16>
//   masked.store <16 x i16> %t, %p, mask of lane 3  => %e = extractelement <16 x i16> %t, 3
//                                                      store i16 %e, %p + 3
//
// X86's instruction selection in LLVM 22 would join the truncation and the masked store, and then
// select a scalar store of the wide element. For AVX-512, this store writes four bytes in place of
// two, and so overwrites the next element or memory behind the tensor. The rewritten store is
// selected correctly.
//
// Takes time linear in the number of instructions.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::fsdp;
using llvm::IntrinsicInst;

/// Returns the only lane that a constant mask has. Returns nothing for other masks.
static std::optional<unsigned> onlyLane(llvm::Value *value) {
  auto *mask = dyn_cast<llvm::Constant>(value);
  auto *type = dyn_cast<llvm::FixedVectorType>(value->getType());
  if (!mask || !type)
    return std::nullopt;
  std::optional<unsigned> only;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    llvm::Constant *element = mask->getAggregateElement(lane);
    if (element && element->isNullValue())
      continue;
    if (only || !element || !element->isOneValue())
      return std::nullopt;
    only = lane;
  }
  return only;
}

static void storeOneLane(IntrinsicInst *store, unsigned lane) {
  llvm::IRBuilder<> builder(store);
  llvm::Value *element = builder.CreateExtractElement(store->getArgOperand(0), lane);
  llvm::Value *place =
      builder.CreateConstInBoundsGEP1_64(element->getType(), store->getArgOperand(1), lane);
  uint64_t bytes = store->getDataLayout().getTypeStoreSize(element->getType()).getFixedValue();
  llvm::Align align = store->getParamAlign(1).valueOrOne();
  builder.CreateAlignedStore(element, place, commonAlignment(align, lane * bytes));
  store->eraseFromParent();
}

void fsdp::scalariseStores(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *store = dyn_cast<IntrinsicInst>(&instruction);
      if (!store || store->getIntrinsicID() != llvm::Intrinsic::masked_store)
        continue;
      if (std::optional<unsigned> lane = onlyLane(store->getArgOperand(2)))
        storeOneLane(store, *lane);
    }
}
