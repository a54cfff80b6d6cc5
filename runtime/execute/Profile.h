//===- Profile.h - Times of a program's commands ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For each command, a profile contains the number of executions and their total time. entries()
// adds up the commands of each kernel, and the commands of each type of collective.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_PROFILE_H
#define FSDPRT_EXECUTE_PROFILE_H

#include "core/Clock.h"
#include "execute/Instruction.h"
#include "fsdprt/fsdprt.h"
#include <vector>

namespace fsdprt {

class Profile {
public:
  /// The manifest and the instructions must outlive the profile.
  Profile(const fb::Manifest &manifest, const std::vector<Instruction> &instructions)
      : manifest(manifest), instructions(instructions), counters(instructions.size()) {}

  static uint64_t now() { return monotonicNanoseconds(); }

  void begin() { began = now(); }
  void end() { total += now() - began; }
  void add(size_t instruction, uint64_t nanoseconds) {
    ++counters[instruction].runs;
    counters[instruction].nanoseconds += nanoseconds;
  }
  void clear() {
    counters.assign(counters.size(), {});
    total = 0;
  }

  const std::vector<Instruction> &getInstructions() const { return instructions; }
  uint64_t totalNanoseconds() const { return total; }
  /// Returns one entry for each kernel, for each type of collective, for all copies and for all
  /// fills, sorted by descending time.
  std::vector<fsdprt_profile_entry> entries() const;

private:
  struct Counter {
    uint64_t runs = 0, nanoseconds = 0;
  };
  const fb::Manifest &manifest;
  const std::vector<Instruction> &instructions;
  std::vector<Counter> counters;
  uint64_t began = 0, total = 0;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_PROFILE_H
