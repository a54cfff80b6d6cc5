//===- StepSlots.h - Slots of the step block -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_STEPSLOTS_H
#define FSDP_LIB_UPDATE_STEPSLOTS_H

#include "Elementwise.h"
#include "Programs.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {

/// Combined result of the checks of all lookups in a program. All values are scalars. The values
/// are null if the program has no checks.
struct LookupResult {
  /// 1 if a lookup of this rank is out of range, else 0. Later, this number is summed over the
  /// ranks.
  Value failed;
  /// Four f32 values: the number of the lookup that is out of range, and three parts of its id.
  SmallVector<Value> report;
};

/// Builds the new value of an element of the step block. `slot` is the index of the element. Each
/// call of set() builds a selection that replaces `value` by `newValue` if `slot` equals `which`.
struct SlotSelector {
  ImplicitLocOpBuilder &b;
  Value slot, value;

  void set(StepSlot which, Value newValue);
};

/// Builds the combined result, which describes the first lookup of the program that is out of
/// range. The id of this lookup is divided into parts that f32 represents exactly.
LookupResult combineLookups(OpBuilder &builder, const Program &program);

/// Writes the results of the checks into their slots. `args` contains the elements of `report`,
/// then the number of ranks with a failed lookup.
void setLookups(ImplicitLocOpBuilder &b, SlotSelector &slots, ValueRange args);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_STEPSLOTS_H
