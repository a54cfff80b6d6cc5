//===- FloatOps.h - Float arithmetic in any rounding mode -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implemented in RoundedFloats.cpp, which is compiled for the host's rounding modes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
#define FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H

#include "emulator/arithmetic/Formats.h"
#include "emulator/machine/Decoder.h"

namespace fsdprt::emulate {

/// Returns the handler of add, sub, mul, div, fma, mad, rcp or sqrt in another mode than nearest
/// even. The mode (1 zero, 2 down, 3 up) is in `modifier`; .ftz and .sat are bits 0 and 1 of
/// `modifier2`.
Handler roundedHandler(std::string_view name, Type type);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_ARITHMETIC_FLOATOPS_H
