//===- Arguments.h - Arguments of the function ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_ARGUMENTS_H
#define FSDP_EMULATE_ARGUMENTS_H

#include "emulator/Emulator.h"
#include <optional>

namespace fsdprt::emulate {

/// A number, or memory of numbers.
struct Argument {
  Type type = Type::U32;
  Storage *storage = nullptr; ///< or a number
};

/// "f32[256]:iota", "u32:5" or "map:...": the bytes go to the launch, memory into the emulator.
/// `before` are those before it.
Argument addArgument(const std::string &text, const std::vector<Argument> &before,
                     Emulator &emulator, Launch &launch);
/// A tensor map of memory of its own, or of an argument before it; `text` is what is after "map:".
Argument addTensorMap(const std::string &text, const std::vector<Argument> &before,
                      Emulator &emulator, Launch &launch);
/// Of `count` elements, filled as `how` says.
Storage &addMemory(Type type, uint64_t count, const std::string &how, const std::string &whole,
                   unsigned index, Emulator &emulator);

/// The element's value as text.
std::string elementText(const Argument &argument, uint64_t index);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_ARGUMENTS_H
