//===- PartOrder.cpp - Unequal parts of a reduced dimension -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Gpu/PartOrder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir::fsdp;

/// Returns the number of parts of each tile.
static llvm::SmallVector<int64_t> listParts(const PartOrder &order) {
  Integers m;
  return llvm::map_to_vector(llvm::seq<int64_t>(0, order.tiles),
                             [&](int64_t tile) { return order.partsOf(m, tile); });
}

int64_t PartOrder::leastParts() const { return *llvm::min_element(listParts(*this)); }

int64_t PartOrder::mostParts() const { return *llvm::max_element(listParts(*this)); }

int64_t PartOrder::allParts() const { return llvm::sum_of(listParts(*this)); }
