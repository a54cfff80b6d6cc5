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

/// Combined result of the checks of all lookups of a program. The values are scalars, null without
/// checks.
struct LookupResult {
  Value failed; ///< 1 if a lookup is out of range, else 0; later the sum of these over ranks
  SmallVector<Value> report; ///< number of the lookup, and three parts of the index, as f32
};

/// Builds the new value of an element of the step block. Each call of set() builds a selection that
/// replaces the value if the element's index `slot` is the given slot.
struct SlotSelector {
  ImplicitLocOpBuilder &b;
  Value slot, value;

  void set(StepSlot which, Value newValue);
};

/// Builds the combined result, which describes the first lookup of the program that is out of
/// range. The index is divided into parts that f32 holds exactly.
LookupResult combineLookups(OpBuilder &builder, const Program &program);

/// Writes the results of the checks into their slots. `args` contains the elements of `report`,
/// then the number of ranks with a failed lookup.
void setLookups(ImplicitLocOpBuilder &b, SlotSelector &slots, ValueRange args);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_STEPSLOTS_H
