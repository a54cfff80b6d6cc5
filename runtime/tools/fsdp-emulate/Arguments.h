//===- Arguments.h - Kernel arguments of fsdp-emulate -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_ARGUMENTS_H
#define FSDP_EMULATE_ARGUMENTS_H

#include "emulator/Emulator.h"
#include <optional>

namespace fsdprt::emulate {

/// A kernel argument from --arg: a number, or the address of memory with elements of type `type`.
struct Argument {
  Type type = Type::U32;
  /// Memory of the argument, which the emulator owns. Null if the argument is a number.
  Storage *storage = nullptr;
};

/// Parses a text such as "f32[256]:iota", "u32:5" or "map:...". If the argument needs memory,
/// allocates it in `emulator`. Appends the argument to `launch`. `before` contains the arguments
/// that precede this argument. Throws Error if the text is invalid.
Argument addArgument(const std::string &text, const std::vector<Argument> &before,
                     Emulator &emulator, Launch &launch);
/// Parses `text`, the text of --arg after "map:", and appends a tensor map to `launch`. The map
/// describes new memory or the memory of an earlier argument.
Argument addTensorMap(const std::string &text, const std::vector<Argument> &before,
                      Emulator &emulator, Launch &launch);
/// Allocates memory for `count` elements of argument `index`. Fills the memory by the method that
/// `how` names, such as "iota". `whole` is the whole text of the option --arg, for use in messages.
Storage &addMemory(Type type, uint64_t count, const std::string &how, const std::string &whole,
                   unsigned index, Emulator &emulator);

/// Returns the value of an element as text, or "?" if the element was never written.
std::string elementText(const Argument &argument, uint64_t index);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_ARGUMENTS_H
