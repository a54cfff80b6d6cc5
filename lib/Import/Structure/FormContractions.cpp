//===- FormContractions.cpp - Form linalg.contract --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   generic {(m,n,k)->(m,k)}, {..->(n,k)}, {..->(m,n)}      linalg.contract indexing_maps = [..]
//     { %p = mulf %a, %b ; addf %out, %p }             ->     ins(%a, %b) outs(%c)
//
// Does not change the maps, because linalg.contract reads operands in any layout. Requires at least
// one loop of each kind (m, n and k). A sum such as Σ_n g[n,c]·x[n,c] therefore remains a generic.
// Does not use MLIR's conversion to named ops, because this conversion drops transposes in LLVM 22.
//
//===----------------------------------------------------------------------===//

#include "Structure/Structured.h"
#include "fsdp/Import/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMCONTRACTIONSPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct FormContractionsPass : public fsdp::impl::FormContractionsPassBase<FormContractionsPass> {
  using FormContractionsPassBase::FormContractionsPassBase;
  void runOnOperation() override;
};
} // namespace

void FormContractionsPass::runOnOperation() {
  SmallVector<linalg::GenericOp> products;
  getOperation()->walk([&](linalg::GenericOp op) {
    if (isContraction(op))
      products.push_back(op);
  });
  for (linalg::GenericOp op : products) {
    OpBuilder b(op);
    auto contract = linalg::ContractOp::create(b, op.getLoc(), op->getResultTypes(), op.getInputs(),
                                               op.getOutputs(), op.getIndexingMaps());
    op->replaceAllUsesWith(contract);
    op->erase();
    ++numFormed;
  }
}
