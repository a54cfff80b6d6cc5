//===- FloatOps.h - Float arithmetic in any rounding mode -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// RoundedFloats.cpp implements this interface. It is compiled with -frounding-math.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
#define FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

namespace fsdprt::emulate {

/// Returns the handler of add, sub, mul, div, fma, mad, rcp or sqrt for a rounding mode other than
/// nearest even. Instruction::modifier holds the mode (1 towards zero, 2 down, 3 up); bits 0 and 1
/// of Instruction::modifier2 are .ftz and .sat.
Handler roundedHandler(std::string_view name, Type type);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
