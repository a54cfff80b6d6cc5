//===- RankWalk.h - The programs of one rank, command by command -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What touches a rank's bytes: its commands, in their order, and the transfers that it has in
// flight, in which peers read its sources (Communicator.h, (R1) and (R2)). So a start forks a
// stream off that which computes, and the wait of its id joins it again:
//
//     compute    a | start 1 | b | c | wait 1 | d          1 knows a; d knows 1; b and c do not
//     transfer 1           \............/
//
// Everything that a command touches is compared with what the shadow has of it. A walk takes from
// the artifact, and from the rank what its pieces are.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_RANKWALK_H
#define FSDPRT_NULL_RANKWALK_H

#include "null/Accesses.h"
#include "null/LiveBuffers.h"
#include "null/Shadow.h"

namespace fsdprt {

struct WalkCounts {
  uint64_t commands = 0, events = 0, bytes = 0; // events: starts and waits; bytes: of all accesses
};

class RankWalk {
public:
  /// `who`: the ranks that this one stands for, for messages.
  RankWalk(const fb::Manifest &manifest, const fb::Layout &layout, const Mesh &mesh, uint64_t rank,
           std::string who, Findings &findings);

  /// The host writes what a session does before its first program.
  void begin();
  /// The host writes all states and blocks, as after a save.
  void restore();
  /// The host writes inputs, the program runs, and the host reads the step block. `title` is for
  /// messages: "step 2".
  void run(const fb::Program &program, const std::string &title);
  /// The host reads all states, as for a save or an export.
  void save();

  const WalkCounts &getCounts() const { return counts; }
  size_t numCells() const { return shadow.numCells(); }

private:
  using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;
  /// Between its start and its wait.
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
  Clock clock;                 // of the stream that computes
  std::vector<uint32_t> times; // by stream: of its last epoch
  std::vector<uint32_t> freeStreams;
  std::map<uint32_t, InFlight> flying; // by id
  std::vector<std::string> titles;     // by run
  std::string programName;
  Moment now;
  std::vector<Access> current; // of the command at work
  WalkCounts counts;
};

} // namespace fsdprt

#endif // FSDPRT_NULL_RANKWALK_H
