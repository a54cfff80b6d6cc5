//===- EmulateInputs.h - Whole kernels in tests -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_EMULATOR_EMULATEINPUTS_H
#define FSDPRT_TEST_EMULATOR_EMULATEINPUTS_H

#include "emulator/arithmetic/Formats.h"
#include "test/emulator/EmulateFixture.h"
#include <fstream>
#include <iterator>
#include <random>

namespace fsdprt::test {

inline std::string readInput(const std::string &name) {
  std::ifstream file(std::string(FSDPRT_EMULATE_INPUTS) + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::vector<uint16_t> randomBrains(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = emulate::Brain::narrow(float(int(random() % 2001) - 1000) / 1000);
  return values;
}

/// Returns a copy of `text` in which `to` replaces occurrence number `n` of `part`, counted from 0.
/// Returns "" if there is no such occurrence.
inline std::string replaced(const std::string &text, const std::string &part, unsigned n,
                            const std::string &to) {
  size_t at = text.find(part);
  for (; n && at != std::string::npos; --n)
    at = text.find(part, at + 1);
  if (at == std::string::npos)
    return "";
  std::string changed = text;
  return changed.replace(at, part.size(), to);
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EMULATOR_EMULATEINPUTS_H
