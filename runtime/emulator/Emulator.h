//===- Emulator.h - Run PTX without a GPU -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the emulator, which parses a module, allocates memory, and launches functions.
//
//   Emulator emulator("kernel.ptx", text);
//   uint64_t x = emulator.memory().attach("x", data, bytes).base;
//   Launch launch;
//   launch.entry = "kernel", launch.block = {128, 1, 1};
//   launch.argument(x), launch.argument(uint32_t(n));
//   emulator.launch(launch);
//
// Every failure is reported as an Error, whose message has the form "kernel.ptx:12:5: error: ...".
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_EMULATOR_H
#define FSDPRT_EMULATOR_EMULATOR_H

#include "emulator/machine/Memory.h"
#include <cstring>

namespace fsdprt::emulate {

/// Maps each global or constant variable of a module to the memory of the variable.
using Variables = std::map<const Variable *, Storage *>;

struct Checks {
  /// true to check that registers and memory are written before they are read
  bool initialised = true;
  /// true to check that conflicting accesses of different threads are ordered
  bool races = true;
};

struct Launch {
  std::string entry;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  uint64_t dynamicSharedBytes = 0;
  std::vector<std::vector<uint8_t>> arguments; ///< bytes of each argument
  uint64_t stepLimit = uint64_t(1) << 40;      ///< maximum number of instructions of all warps
  Checks checks;
  /// If not 0, several clusters run at the same time, and the order and the lengths of turns are
  /// random, as given by this seed.
  uint32_t seed = 0;

  template <typename T>
  void argument(const T &value) {
    auto bytes = reinterpret_cast<const uint8_t *>(&value);
    arguments.emplace_back(bytes, bytes + sizeof value);
  }
};

struct Counters {
  uint64_t instructions = 0;     ///< number of instructions that warps have executed
  uint64_t laneInstructions = 0; ///< number of instructions, counted once per executing lane
  uint64_t globalLoadBytes = 0, globalStoreBytes = 0;
  uint64_t globalSectors = 0; ///< number of 32-byte sectors, summed over instructions of warps
  uint64_t sharedLoadBytes = 0, sharedStoreBytes = 0;
  uint64_t sharedPasses = 0;  ///< passes of shared memory if no banks conflicted
  uint64_t bankConflicts = 0; ///< additional passes, due to conflicts of banks
  uint64_t divergentBranches = 0, barriers = 0, atomics = 0;
  uint64_t multiplyAdds = 0; ///< number of multiply-adds of matrix instructions
  std::map<std::string, uint64_t, std::less<>> opcodes;
};

class Emulator {
public:
  /// Parses a module. Several emulators, each with its own module, may share the same memory.
  Emulator(std::string name, std::string text,
           std::shared_ptr<Memory> memory = std::make_shared<Memory>());
  ~Emulator();
  Emulator(const Emulator &) = delete;
  Emulator &operator=(const Emulator &) = delete;
  const Module &module() const { return *parsed; }
  Memory &memory() { return *all; }
  const Program &program(const std::string &entry);
  /// Returns the memory of a variable that is in global or constant memory.
  Storage &variable(const std::string &name);
  Counters launch(const Launch &launch);

private:
  void placeVariables();

  std::unique_ptr<Module> parsed;
  std::shared_ptr<Memory> all;
  std::map<std::string, Program> programs;
  Variables variables;
};

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_EMULATOR_H
