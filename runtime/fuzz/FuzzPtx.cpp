//===- FuzzPtx.cpp - Fuzz the emulator --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the input as PTX, decodes its functions, and runs each kernel for a few instructions. All
// arguments of a kernel are pointers to the same small allocation.
//
//===----------------------------------------------------------------------===//

#include "emulator/Emulator.h"
#include "emulator/ptx/Syntax.h"
#include "fuzz/Fuzzing.h"
#include <algorithm>
#include <vector>

using namespace fsdprt;
using namespace fsdprt::emulate;

static void launch(Emulator &emulator, const Function &function, uint64_t base) {
  Launch launch;
  launch.entry = function.name;
  launch.block[0] = std::clamp<uint32_t>(function.requiredThreads[0], 1, 64);
  launch.stepLimit = 1000;
  for (const Variable *parameter : function.parameters) {
    // PTX limits the parameters of a kernel to 4096 bytes in total.
    constexpr uint64_t most = 4096;
    if (parameter->bytes > most)
      return;
    std::vector<uint8_t> &argument = launch.arguments.emplace_back(parameter->bytes);
    std::memcpy(argument.data(), &base, std::min<size_t>(argument.size(), sizeof base));
  }
  emulator.launch(launch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::tryToRead([&] {
    Emulator emulator("fuzz.ptx", std::string(reinterpret_cast<const char *>(data), size));
    static uint8_t memory[4096];
    uint64_t base = emulator.memory().attach("memory", memory, sizeof memory).base;
    for (const auto &function : emulator.module().functions)
      if (function->isEntry)
        fuzz::tryToRead([&] { launch(emulator, *function, base); });
  });
  return 0;
}
