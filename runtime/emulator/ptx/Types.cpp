//===- Types.cpp - Types of PTX's values ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the table of types with their names and sizes.
//
//===----------------------------------------------------------------------===//

#include "emulator/ptx/Types.h"
#include <iterator>

using namespace fsdprt::emulate;

namespace {
struct Row {
  const char *name;
  uint8_t size;
  bool isSigned, isFloat;
};
} // namespace

static const Row rows[] = {
    {"pred", 0, false, false}, {"b8", 1, false, false},   {"b16", 2, false, false},
    {"b32", 4, false, false},  {"b64", 8, false, false},  {"b128", 16, false, false},
    {"u8", 1, false, false},   {"u16", 2, false, false},  {"u32", 4, false, false},
    {"u64", 8, false, false},  {"s8", 1, true, false},    {"s16", 2, true, false},
    {"s32", 4, true, false},   {"s64", 8, true, false},   {"f16", 2, true, true},
    {"f16x2", 4, true, true},  {"bf16", 2, true, true},   {"bf16x2", 4, true, true},
    {"tf32", 4, true, true},   {"f32", 4, true, true},    {"f32x2", 8, true, true},
    {"f64", 8, true, true},    {"e4m3x2", 2, true, true}, {"e5m2x2", 2, true, true},
};

unsigned fsdprt::emulate::sizeOf(Type type) { return rows[static_cast<int>(type)].size; }
const char *fsdprt::emulate::nameOf(Type type) { return rows[static_cast<int>(type)].name; }
bool fsdprt::emulate::isSigned(Type type) { return rows[static_cast<int>(type)].isSigned; }
bool fsdprt::emulate::isFloat(Type type) { return rows[static_cast<int>(type)].isFloat; }

std::optional<Type> fsdprt::emulate::typeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (name == rows[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

const char *fsdprt::emulate::nameOf(Space space) {
  static const char *const names[] = {"generic", "global", "shared", "local", "param", "const"};
  return names[static_cast<int>(space)];
}
