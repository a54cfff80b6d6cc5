//===- NameBatch.cpp - Name the batch arguments -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is not a parameter comes with each batch:
//
//   first integer tensor                          "tokens"
//   the next integer tensor of the same shape     "targets"   (when none has that name)
//   any other                                     its location's name, or "input.N"
//
// Names that arguments already have stay. Ids without a limit may be anything.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Passes.h"
#include "Positions.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_NAMEBATCHPASS
#include "fsdp/Import/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct NameBatchPass : public fsdp::impl::NameBatchPassBase<NameBatchPass> {
  using NameBatchPassBase::NameBatchPassBase;
  void runOnOperation() override;
};
} // namespace

void NameBatchPass::runOnOperation() {
  func::FuncOp func = getOperation();
  if (func.isPrivate() || func.isExternal())
    return;
  Builder b(&getContext());
  llvm::StringSet<> taken;
  RankedTensorType tokens;
  SmallVector<BlockArgument> open;
  for (BlockArgument arg : func.getArguments()) {
    unsigned i = arg.getArgNumber();
    if (func.getArgAttr(i, FSDPDialect::paramAttr) || func.getArgAttr(i, FSDPDialect::keyAttr))
      continue;
    auto name = func.getArgAttrOfType<StringAttr>(i, FSDPDialect::batchAttr);
    if (!name) {
      open.push_back(arg);
      continue;
    }
    taken.insert(name.getValue());
    if (name.getValue() == "tokens")
      tokens = dyn_cast<RankedTensorType>(arg.getType());
  }
  for (BlockArgument arg : open) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    bool ids = type && type.getElementType().isInteger() && type.getElementTypeBitWidth() > 1;
    std::string name = nameFromLocation(arg.getLoc());
    if (ids && !tokens && !taken.contains("tokens")) {
      tokens = type;
      name = "tokens";
    } else if (ids && tokens && type.getShape() == tokens.getShape() && !taken.contains("targets")) {
      name = "targets";
    } else if (name.empty()) {
      name = "input." + std::to_string(getPosition(arg));
    }
    while (!taken.insert(name).second)
      name += "." + std::to_string(getPosition(arg));
    func.setArgAttr(arg.getArgNumber(), FSDPDialect::batchAttr, b.getStringAttr(name));
    ++numNamed;
  }
  for (BlockArgument arg : func.getArguments())
    func.removeArgAttr(arg.getArgNumber(), positionAttr);
  func.walk([](Operation *op) {
    op->removeDiscardableAttr(positionAttr);
    op->removeDiscardableAttr(keepAttr);
  });
}
