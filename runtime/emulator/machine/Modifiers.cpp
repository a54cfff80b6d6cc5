//===- Modifiers.cpp - The parts of an opcode -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The opcode "cvt.rn.bf16x2.f32" consists of the name cvt and three modifiers. A decoder removes
// the modifiers that it supports. If a modifier is left, the statement is invalid.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"

using namespace fsdprt::emulate;

Modifiers::Modifiers(std::string_view opcode) {
  for (size_t at = 0; at <= opcode.size();) {
    size_t dot = opcode.find('.', at);
    std::string_view part = opcode.substr(at, dot == std::string_view::npos ? dot : dot - at);
    if (at)
      parts.push_back(part);
    else
      base = part;
    if (dot == std::string_view::npos)
      break;
    at = dot + 1;
  }
}

bool Modifiers::has(std::string_view part) const {
  for (std::string_view known : parts)
    if (known == part)
      return true;
  return false;
}

bool Modifiers::take(std::string_view part) {
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == part) {
      parts.erase(parts.begin() + i);
      return true;
    }
  return false;
}

int Modifiers::takeOneOf(std::initializer_list<std::string_view> wanted) {
  int index = 0;
  for (std::string_view part : wanted) {
    if (take(part))
      return index;
    ++index;
  }
  return -1;
}

std::optional<Type> Modifiers::takeType() {
  for (size_t i = 0; i < parts.size(); ++i)
    if (auto type = typeNamed(parts[i])) {
      parts.erase(parts.begin() + i);
      return type;
    }
  return std::nullopt;
}
