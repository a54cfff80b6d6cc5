//===- LossScale.cpp - Scale of the loss in f16 -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "LossScale.h"

using namespace mlir;
using namespace mlir::fsdp;

LossScale fsdp::bindLossScale(const Program &program, Value block, const LossScaleRule &rule) {
  func::FuncOp func = program.func;
  auto isScale = [&](BlockArgument arg) {
    return func.getArgAttr(arg.getArgNumber(), lossScaleAttr);
  };
  auto args = func.getArguments();
  auto found = llvm::find_if(args, isScale);
  if (found == args.end())
    return {};
  BlockArgument seed = *found;
  if (rule.fixed == 0)
    func->getParentOfType<ModuleOp>()->setAttr(dynamicScaleAttr, UnitAttr::get(func.getContext()));
  OpBuilder builder(&func.getBody().front(), func.getBody().front().begin());
  Location loc = seed.getLoc();
  Value ins[] = {createElementView(builder, loc, block, StepSlot::LossScale),
                 createElementView(builder, loc, block, StepSlot::Growth)};
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value outs[] = {createEmpty(builder, loc, scalar), createEmpty(builder, loc, scalar),
                  createEmpty(builder, loc, seed.getType())};
  auto made = createElementwise(
      builder, loc, ins, outs, [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Type type = args[0].getType();
        Value scale = createConstant(b, type, rule.fixed), growth = createConstant(b, type, -1.0);
        if (rule.fixed == 0) {
          Value zero = createConstant(b, type, 0.0);
          Value isSet = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, args[0], zero);
          scale = arith::SelectOp::create(b, isSet, args[0], createConstant(b, type, rule.first));
          growth = arith::SelectOp::create(b, isSet, args[1], zero);
        }
        return {scale, growth, castFloat(b, scale, getElementTypeOrSelf(seed))};
      });
  seed.replaceAllUsesWith(made[2]);
  return {made[0], made[1]};
}

void fsdp::updateLossScale(ImplicitLocOpBuilder &b, SlotSelector &slots, Value finite,
                           Value failedRanks, const LossScale &current, const LossScaleRule &rule) {
  Value scale = current.scale, growth = current.growth;
  if (rule.fixed == 0) {
    Type type = scale.getType();
    auto constant = [&](double value) { return createConstant(b, type, value); };
    auto times = [&](double factor) -> Value {
      return arith::MulFOp::create(b, scale, constant(factor));
    };
    Value one = constant(1.0), zero = constant(0.0);
    Value next = arith::MulFOp::create(b, arith::AddFOp::create(b, growth, one), finite);
    Value grows =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, next, constant(rule.growthInterval));
    Value larger = arith::MinimumFOp::create(b, times(2.0), constant(0x1p100));
    Value smaller = arith::MaximumFOp::create(b, times(0.5), constant(0x1p-100));
    Value isFinite = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, finite, zero);
    scale = arith::SelectOp::create(b, isFinite, arith::SelectOp::create(b, grows, larger, scale),
                                    smaller);
    growth = arith::SelectOp::create(b, grows, zero, next);
    if (failedRanks) {
      Value noRank = createConstant(b, failedRanks.getType(), 0.0);
      Value keeps = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, failedRanks, noRank);
      scale = arith::SelectOp::create(b, keeps, current.scale, scale);
      growth = arith::SelectOp::create(b, keeps, current.growth, growth);
    }
  }
  slots.set(StepSlot::LossScale, scale);
  slots.set(StepSlot::Growth, growth);
}
