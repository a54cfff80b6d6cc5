//===- MultiplyAdds.cpp - Arithmetic of a kernel's products -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The product of a contraction's loop ranges, times the trips of the loops around it.
// Not counted: what is done to each element once, and contractions in loops whose trips are not known.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/MultiplyAdds.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Of all loops around `op`; 0 where one is not known.
static uint64_t countTrips(Operation *op) {
  uint64_t trips = 1;
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop; loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    trips *= count ? count->getZExtValue() : 0;
  }
  return trips;
}

MultiplyAdds fsdp::countMultiplyAdds(Operation *kernel) {
  MultiplyAdds counts;
  kernel->walk([&](linalg::LinalgOp op) {
    if (!linalg::isaContractionOpInterface(op))
      return;
    uint64_t products = countTrips(op);
    for (int64_t range : op.getStaticLoopRanges())
      products *= ShapedType::isDynamic(range) ? 0 : static_cast<uint64_t>(range);
    auto isOf = [&](auto matches) {
      return llvm::all_of(op.getDpsInputs(), [&](Value input) { return matches(getElementTypeOrSelf(input)); });
    };
    if (isOf([](Type type) { return type.isBF16(); }))
      counts.bf16 += products;
    else
      counts.wide += products * (isOf([](Type type) { return type.isF64(); }) ? 2 : 1);
  });
  return counts;
}
