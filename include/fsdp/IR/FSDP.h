//===- FSDP.h - The fsdp dialect --------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_FSDP_H
#define FSDP_IR_FSDP_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "fsdp/IR/FSDPDialect.h.inc"
#include "fsdp/IR/FSDPEnums.h.inc"

namespace mlir::fsdp {
/// Side-effect resource that all asynchronous collectives access. Because of this resource, no
/// transformation changes the order of these collectives.
struct FabricResource : SideEffects::Resource::Base<FabricResource> {
  StringRef getName() final { return "Fabric"; }
};
} // namespace mlir::fsdp

#define GET_ATTRDEF_CLASSES
#include "fsdp/IR/FSDPAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "fsdp/IR/FSDPTypes.h.inc"
#define GET_OP_CLASSES
#include "fsdp/IR/FSDPOps.h.inc"

#endif // FSDP_IR_FSDP_H
