//===- Arguments.h - Arguments of the function ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_ARGUMENTS_H
#define FSDP_EMULATE_ARGUMENTS_H

#include "emulate/Emulator.h"
#include <optional>

namespace fsdprt::emulate {

/// A number, or memory of numbers.
struct Argument {
  Type type = Type::U32;
  Storage *storage = nullptr; ///< or a number
};

/// "f32[256]:iota" or "u32:5": the bytes go to the launch, memory into the emulator.
Argument addArgument(const std::string &text, unsigned index, Emulator &emulator, Launch &launch);

/// The element's value as text.
std::string elementText(const Argument &argument, uint64_t index);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_ARGUMENTS_H
