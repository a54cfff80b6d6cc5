//===- ParameterDerived.h - Values derived from parameters ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H
#define FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fsdp {

/// The values that are computed from parameters alone. These are the results of fsdp.unshard, and
/// the results of views and maps that read only parameter-derived values. Examples are transposed,
/// cast, sliced or scaled parameters. These values need not be saved for the backward, because the
/// backward can gather the parameters again.
class ParameterDerived {
public:
  bool contains(Value v);

private:
  bool derive(Operation *def);
  llvm::DenseMap<Operation *, bool> known;
};

/// Returns true if `op` is a tensor view, or a structured op that reduces no loop.
bool isViewOrMap(Operation *op);

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIFFERENTIATE_PARAMETERDERIVED_H
