//===- NvtxRanges.h - Ranges of a rank for profiling tools ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pushes nested NVTX ranges on the thread of each rank:
//
//     step 3 | forward | row tokens, wte.weight   | contract ... | wait all_gather h.0 | ...
//            | backward | ...
//            | update | ...
//
// The host enqueues commands within these ranges, so a profiling tool assigns the work of the GPU
// to them. The labels of launches determine the phases forward, backward and update.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_NVTXRANGES_H
#define FSDPRT_EXECUTE_NVTXRANGES_H

#include "device/cuda/Nvtx.h"
#include "execute/RankObserver.h"
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fsdprt {

/// The names and phases of the commands of a program.
class NvtxRangeNames {
public:
  NvtxRangeNames(const fb::Manifest &manifest, const std::vector<Instruction> &instructions);

  enum Phase : uint8_t { forward, backward, update };
  const char *nameOf(const Instruction &instruction) const {
    return names[index(instruction)].c_str();
  }
  Phase phaseOf(const Instruction &instruction) const { return phases[index(instruction)]; }
  /// Returns true if at least one command has a phase other than `forward`.
  bool hasPhases() const { return phased; }

private:
  size_t index(const Instruction &instruction) const {
    return static_cast<size_t>(&instruction - instructions.data());
  }
  void findPhases();

  const std::vector<Instruction> &instructions;
  std::vector<std::string> names;
  std::vector<Phase> phases;
  bool phased = false;
};

/// The ranges of one run of a rank. The destructor ends open ranges.
class NvtxRun {
public:
  /// Pushes the range of the run. If `nvtx` is null, all functions do nothing.
  NvtxRun(const Nvtx *nvtx, const NvtxRangeNames *names, const char *program, uint64_t run);
  ~NvtxRun();
  NvtxRun(const NvtxRun &) = delete;
  NvtxRun &operator=(const NvtxRun &) = delete;

  void begin(const Instruction &instruction);
  void end() const { nvtx->pop(); }

private:
  const Nvtx *nvtx;
  const NvtxRangeNames *names;
  int phase = -1;
};

/// Observer that pushes and pops the ranges of a group of ranks.
class NvtxObserver : public RankObserver {
public:
  /// Observes ranks [firstRank, firstRank + ranks). `nvtx` must outlive the observer.
  NvtxObserver(const Nvtx &nvtx, const fb::Manifest &manifest, uint32_t firstRank, uint32_t ranks)
      : nvtx(nvtx), manifest(manifest), firstRank(firstRank), runs(ranks) {}

  void prepare(const std::vector<Instruction> &program) override;
  void beginRun(const RankRun &run) override;
  void beforeCommand(const RankRun &run, const Instruction &instruction) override;
  void afterCommand(const RankRun &run, const Instruction &instruction) override;
  void endCommands(const RankRun &run) noexcept override;

private:
  const Nvtx &nvtx;
  const fb::Manifest &manifest;
  uint32_t firstRank;
  std::vector<std::optional<NvtxRun>> runs; ///< the current run of each rank
  /// Names of the ranges of each program. The key is the first instruction of the program.
  std::unordered_map<const Instruction *, std::unique_ptr<NvtxRangeNames>> names;
};

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_NVTXRANGES_H
