//===- Session.h - Implementation of the C interface ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A session has a group of sharded ranks and optionally a group for the unsharded reference. The
// methods of Session implement functions of fsdprt.h and throw Error on failure.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_SESSION_H
#define FSDPRT_EXECUTE_SESSION_H

#include "execute/CommandTimer.h"
#include "execute/RankGroup.h"

namespace fsdprt {

class Session {
public:
  Session(std::shared_ptr<const Artifact> artifact, const fsdprt_session_options &options);
  ~Session();

  void run(const char *program);
  void writeInput(uint32_t rank, uint64_t index, uint32_t microBatch, const void *data,
                  size_t size);
  void readBlock(uint32_t rank, float *block) const;
  void writeBlock(uint32_t rank, const float *block);
  /// Returns the state that has the role `role` in the unit of a parameter, or null if none exists.
  const fb::State *state(const RankGroup &group, uint64_t param, fb::StateRole role) const;
  void readParam(uint32_t rank, uint64_t param, fb::StateRole role, uint64_t first, uint64_t count,
                 void *data, size_t size) const;
  void writeParam(uint64_t param, fb::StateRole role, uint64_t first, uint64_t count,
                  const void *data, DType type);
  /// Sets `memory` to the range and the address of a rank's shard of state `index`, or of the
  /// reference's whole state if `rank` is FSDPRT_REFERENCE.
  void memoryOf(uint32_t rank, uint64_t index, fsdprt_state_memory &memory) const;
  /// Sets `memory` to the range and the address of the copy that the program 'snapshot' made.
  void snapshotOf(uint32_t rank, uint64_t index, fsdprt_state_memory &memory) const;
  /// Copies elements [first, first + count) of a rank's shard of state `index` to `into`. If `into`
  /// is null, copies from `from` to these elements instead.
  void moveState(uint32_t rank, uint64_t index, uint64_t first, uint64_t count, void *into,
                 const void *from) const;
  void pokeShard(uint32_t rank, uint64_t param, void (*change)(void *, void *, size_t), void *user);
  void compare(fsdprt_comparison &result) const;

  /// Repeats the last run of a program. Returns a text that names the first reduction with a
  /// non-finite operand and the ranks that passed this operand. Returns an empty text if all
  /// operands were finite. All processes must call findNonfinite().
  std::string findNonfinite(const char *program);

  void exchange(const void *mine, size_t size, void *all);
  void collect(uint32_t rank, const void *data, size_t size, void *into);

  /// Returns the profile of 'step' on the first rank of this process. Throws Error if the session
  /// has no profile.
  Profile &profile() const;
  /// Returns the trace. If the run has several processes, all processes first send their records to
  /// the process of rank 0.
  const Trace &trace() const;

  /// Returns the number of bytes that are in use on the GPUs of this process's ranks and do not
  /// belong to the arenas. Returns 0 if the device is a CPU.
  uint64_t gpuBytesBeside() const;

  const RankGroup &getRanks() const { return *ranks; }
  const RankFile *getFile() const { return ranks->executor(ranks->firstRank()).getFile(); }
  const RankGroup *getReference() const { return reference.get(); }

private:
  void checkLookups(const RankGroup &group, uint32_t first);
  const RankGroup &group(uint32_t rank) const;
  uint32_t checkRank(uint32_t rank) const; ///< throws Error unless `rank` is in this process
  const fb::Param &param(uint64_t index) const;
  const fb::State &stateOf(uint32_t rank, uint64_t index) const;
  void writeInto(RankGroup &group, const fb::State &state, const fb::Param &param, uint64_t first,
                 uint64_t count, const void *data, DType type);
  bool compareState(uint32_t rank, const fb::State &state, const std::byte *all, uint64_t slices,
                    const std::byte *piece, fsdprt_comparison &result) const;
  const fb::State *wholeOf(const fb::State &held) const;

  const Artifact &artifact;
  std::unique_ptr<RankGroup> ranks, reference;
  std::shared_ptr<CommandTimer> timer; ///< observer of `ranks`; null without a profile or trace
};

uint64_t elementsOf(const fb::Param &param);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_SESSION_H
