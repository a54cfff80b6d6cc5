//===- StepSlots.cpp - Slots of the step block ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "StepSlots.h"
#include "SquareSums.h"

using namespace mlir;
using namespace mlir::fsdp;

void SlotSelector::set(StepSlot which, Value newValue) {
  Value index = arith::ConstantIndexOp::create(b, static_cast<int64_t>(which));
  Value isThis = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot, index);
  value = arith::SelectOp::create(b, isThis, castFloat(b, newValue, value.getType()), value);
}

LookupResult fsdp::combineLookups(OpBuilder &builder, const Program &program) {
  LookupResult result;
  if (program.numLookups == 0)
    return result;
  ValueRange checks = program.getReturn().getOperands().take_back(program.numLookups);
  Location loc = checks.front().getLoc();
  auto scalar = [&](Type type) {
    return createEmpty(builder, loc, RankedTensorType::get({}, type));
  };
  SmallVector<Value> outs{scalar(getSquaresType(program))};
  for (unsigned i = 0; i < 4; ++i)
    outs.push_back(scalar(builder.getF32Type()));
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) -> SmallVector<Value> {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
    };
    Value zero = constant(0), index = zero, number = zero;
    for (unsigned i = program.numLookups; i-- > 0;) {
      Value isBad = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, args[i], zero);
      index = arith::SelectOp::create(b, isBad, args[i], index);
      number = arith::SelectOp::create(b, isBad, constant(i + 1), number);
    }
    Value isBad = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, number, zero);
    Type type = args[program.numLookups].getType(), f32 = b.getF32Type();
    SmallVector<Value> values{arith::SelectOp::create(b, isBad, createConstant(b, type, 1.0),
                                                      createConstant(b, type, 0.0)),
                              arith::SIToFPOp::create(b, f32, number)};
    for (int64_t shift : {42, 21, 0}) {
      Value part = arith::ShRUIOp::create(b, index, constant(shift));
      part = arith::AndIOp::create(b, part, constant(shift == 42 ? 0x3fffff : 0x1fffff));
      values.push_back(arith::SIToFPOp::create(b, f32, part));
    }
    return values;
  };
  SmallVector<Value> made = createElementwise(builder, loc, checks, outs, body);
  result.failed = made.front();
  llvm::append_range(result.report, ArrayRef(made).drop_front());
  return result;
}

void fsdp::setLookups(ImplicitLocOpBuilder &b, SlotSelector &slots, ValueRange args) {
  slots.set(StepSlot::Lookups, args.back());
  for (int64_t i = 0; i < 4; ++i)
    slots.set(static_cast<StepSlot>(static_cast<int64_t>(StepSlot::LookupNumber) + i), args[i]);
}
