//===- Combine.h - Operations of atomics and reductions ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the value that the instructions atom, red (PTX ISA, "Parallel Synchronization and
// Communication Instructions") and cp.reduce.async.bulk write to memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_MEMORY_COMBINE_H
#define FSDPRT_EMULATOR_MEMORY_COMBINE_H

#include "emulator/machine/Decoder.h"

namespace fsdprt::emulate {

enum class Combination : uint8_t { Add, Min, Max, Inc, Dec, Exch, Cas, And, Or, Xor };

/// Returns the result of an operation, which becomes the new value in memory. `old` is the value in
/// memory, `b` is the operand, and `c` is the second operand of cas.
uint64_t combine(Combination op, Type type, bool isGlobal, uint64_t old, uint64_t b,
                 uint64_t c = 0);
bool isCombination(Combination op, Type type);
/// takeCombination() takes the operation from the modifiers of the opcode, and fails if the opcode
/// has no operation. checkCombination() fails if the operation does not exist for the type.
Combination takeCombination(Decoder &d);
void checkCombination(Decoder &d, Combination op, Type type);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_MEMORY_COMBINE_H
