//===- ParameterDerived.h - What is made of parameters alone ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H
#define FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fsdp {

/// Results of fsdp.unshard, and views and maps of such tensors alone: transposed,
/// cast, sliced or scaled parameters. Never worth saving: gathering gives them back.
class ParameterDerived {
public:
  bool contains(Value v);

private:
  bool derive(Operation *def);
  llvm::DenseMap<Operation *, bool> known;
};

/// A tensor view, or a structured op that reduces no loop.
bool isViewOrMap(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H
