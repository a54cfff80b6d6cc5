//===- RankWalk.h - Walks the programs of one rank ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks the commands of one rank in order, including the transfers that these commands start. While
// a collective is in flight, peers read its source (Communicator.h, (R1) and (R2)). The start of a
// transfer therefore forks a new stream off the compute stream, and the wait for the transfer joins
// the new stream with the compute stream:
//
//     compute    a | start 1 | b | c | wait 1 | d     order: a, 1, d; b and c may race with 1
//     transfer 1           \............/
//
// Every access of a command is compared with the recorded state of its bytes (Shadow.h). The result
// of the walk depends only on the artifact and on the indices of the rank's pieces.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_RANKWALK_H
#define FSDPRT_NULL_RANKWALK_H

#include "null/Accesses.h"
#include "null/LiveBuffers.h"
#include "null/Shadow.h"

namespace fsdprt {

struct WalkCounts {
  /// `events` is the number of started transfers plus the number of waits. `bytes` is the sum of
  /// the bytes of all accesses.
  uint64_t commands = 0, events = 0, bytes = 0;
};

class RankWalk {
public:
  /// `who` is a name for messages: the name of the ranks that this walk represents.
  RankWalk(const fb::Manifest &manifest, const fb::Layout &layout, const Mesh &mesh, uint64_t rank,
           std::string who, Findings &findings);

  /// Records what the host writes before the first program: the step block and the rank block.
  void begin();
  /// Records that the host writes all states and the step block. The host does so when it loads a
  /// save.
  void restore();
  /// Records that the host writes the inputs, walks the program, and records that the host reads
  /// the step block. `title` names the run in messages, for example "step 2".
  void run(const fb::Program &program, const std::string &title);
  /// Records that the host reads all states and the step block. The host does so for a save or an
  /// export.
  void save();

  const WalkCounts &getCounts() const { return counts; }
  size_t numCells() const { return shadow.numCells(); }

private:
  using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;
  /// A transfer that has started and for which no wait has been executed.
  struct InFlight {
    Epoch epoch;
    Moment start;
  };

  void walk(const Commands &commands, uint32_t iteration, uint32_t since);
  void walkLoop(const fb::Command &command);
  void execute(const fb::Command &command);
  Epoch startTransfer(uint32_t id);
  void wait(uint32_t id);
  void endBlock(const std::vector<uint32_t> &before);
  void checkClash(const fb::Command &command);
  void checkMemories(const fb::Command &command);
  void touch(const Access &access, Epoch epoch);
  bool checkPlace(const Access &access);
  void checkCell(const Access &access, Epoch epoch, uint64_t begin, uint64_t end, const Cell &cell);
  void hostTouches(uint64_t begin, uint64_t bytes, bool writes);
  void onStates(bool writes);
  void report(Fault fault, const std::string &key, const std::string &text);
  void reportRace(const Access &access, uint64_t begin, uint64_t end, const Touch &other,
                  bool otherWrites);
  std::string describe(const Moment &moment) const;
  std::string rangeText(uint64_t begin, uint64_t end) const;
  void endRange(uint64_t begin, uint64_t end);

  const fb::Manifest &manifest;
  const fb::Layout &layout;
  std::string who;
  Findings &findings;
  Accesses accesses;
  LiveBuffers buffers;
  Shadow shadow;
  Clock clock;                 // clock of the compute stream
  std::vector<uint32_t> times; // time of the last epoch of each stream
  std::vector<uint32_t> freeStreams;
  std::map<uint32_t, InFlight> flying; // transfers in flight, by id
  std::vector<std::string> titles;     // titles of the runs
  std::string programName;
  Moment now;
  std::vector<Access> current; // accesses of the current command
  WalkCounts counts;
};

} // namespace fsdprt

#endif // FSDPRT_NULL_RANKWALK_H
