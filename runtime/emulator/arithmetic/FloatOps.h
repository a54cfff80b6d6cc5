//===- FloatOps.h - Float arithmetic in any rounding mode -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// RoundedFloats.cpp implements the functions of this header. It is compiled with -frounding-math.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
#define FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

namespace fsdprt::emulate {

/// Returns the handler of add, sub, mul, div, fma, mad, rcp or sqrt for all rounding modes except
/// rounding to nearest even. Instruction::modifier contains the rounding mode: 1 is towards zero, 2
/// is down, and 3 is up. In Instruction::modifier2, bit 0 means .ftz and bit 1 means .sat.
Handler roundedHandler(std::string_view name, Type type);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
