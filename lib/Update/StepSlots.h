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

/// What the checks of a program's lookups say, as scalars; null where there are none.
struct LookupResult {
  Value failed;              ///< 1 where a lookup is out of range; then summed over the ranks
  SmallVector<Value> report; ///< number of the lookup and three parts of its index, in f32
};

/// Picks values by the slot of the block that an element is.
struct SlotSelector {
  ImplicitLocOpBuilder &b;
  Value slot, value;

  void set(StepSlot which, Value newValue);
};

/// Combines the checks of a program: the first lookup that was out of range, and its index in parts
/// that f32 holds.
LookupResult combineLookups(OpBuilder &builder, const Program &program);

/// Writes what the checks say into their slots. `args`: the report, then the number of ranks.
void setLookups(ImplicitLocOpBuilder &b, SlotSelector &slots, ValueRange args);

} // namespace mlir::fsdp

#endif // FSDP_LIB_UPDATE_STEPSLOTS_H
