//===- Dialect.cpp - Registration of the fsdp dialect -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/StopGradient.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

#include "fsdp/IR/FSDPDialect.cpp.inc"
#include "fsdp/IR/FSDPEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fsdp/IR/FSDPAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "fsdp/IR/FSDPTypes.cpp.inc"

namespace {
/// Allows inlining of functions that contain ops of the dialect without side effects, such as
/// fsdp.stop_gradient in an imported function. Ops with side effects occur only in later stages,
/// and these stages do not inline functions.
struct FSDPInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *op, Region *, bool, IRMapping &) const final {
    return isMemoryEffectFree(op);
  }
};
} // namespace

void FSDPDialect::initialize() {
  addInterfaces<FSDPInlinerInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fsdp/IR/FSDPAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "fsdp/IR/FSDPTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fsdp/IR/FSDPOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fsdp/IR/FSDPGradientOps.cpp.inc"
      >();
}

Operation *FSDPDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

int64_t AxisAttr::getSize() const {
  int64_t size = 1;
  for (int64_t factor : getFactors())
    size *= factor;
  return size;
}
