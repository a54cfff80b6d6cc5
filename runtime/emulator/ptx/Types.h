//===- Types.h - Types of PTX's values --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the types of PTX ISA, "Fundamental Types" and "Packed Data Types", and the state spaces.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_PTX_TYPES_H
#define FSDPRT_EMULATOR_PTX_TYPES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace fsdprt::emulate {

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F32x2,
  F64,
  E4M3x2,
  E5M2x2,
};

/// Returns the size of the type in bytes. The size of a predicate is 0.
unsigned sizeOf(Type type);
const char *nameOf(Type type);
bool isSigned(Type type);
bool isFloat(Type type);
/// Returns the type that has a name such as "u32", without the dot.
std::optional<Type> typeNamed(std::string_view name);

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };
const char *nameOf(Space space);

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_TYPES_H
