//===- Combine.h - Operations of atomics and reductions ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the new value in memory for atom, red (PTX ISA, "Parallel Synchronization and
// Communication Instructions") and cp.reduce.async.bulk.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_COMBINE_H
#define FSDPRT_EMULATOR_MEMORY_COMBINE_H

#include "emulator/machine/Decoder.h"

namespace fsdprt::emulate {

enum class Combination : uint8_t { Add, Min, Max, Inc, Dec, Exch, Cas, And, Or, Xor };

/// Returns the new value in memory. `b` is the operand, `c` the second operand of cas.
uint64_t combine(Combination op, Type type, bool isGlobal, uint64_t old, uint64_t b,
                 uint64_t c = 0);
bool isCombination(Combination op, Type type);
/// Take the operation of an opcode, or fail if there is none (takeCombination()). Fail if the type
/// does not support the operation (checkCombination()).
Combination takeCombination(Decoder &d);
void checkCombination(Decoder &d, Combination op, Type type);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_COMBINE_H
