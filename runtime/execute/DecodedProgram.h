//===- DecodedProgram.h - A program as a flat list --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decodes each program to a list of instructions once, before the first run. The instructions of a
// loop's body follow the instruction of the loop. Each collective and each copy on a channel has an
// index. The instruction that waits for a collective or copy contains the index of this collective
// or copy.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_DECODEDPROGRAM_H
#define FSDPRT_EXECUTE_DECODEDPROGRAM_H

#include "artifact/Artifact.h"
#include "collectives/Communicator.h"
#include "execute/Instruction.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace fsdprt {

struct DecodedProgram {
  std::vector<Instruction> instructions;
  uint64_t end = 0;         ///< highest end offset of the ranges that commands use
  uint64_t runs = 0;        ///< number of runs of the program so far
  bool hasChannels = false; ///< true if a collective is on a channel other than 0
};

class ProgramDecoder {
public:
  /// Decodes programs of `layout`. If `onlyKinds` is not empty, decode() omits all commands except
  /// loops and launches of kernels of these kinds. The programs 'init' and 'snapshot' are always
  /// decoded completely.
  ProgramDecoder(const Artifact &artifact, const fb::Layout &layout, Communicator &communicator,
                 const std::vector<std::string> &onlyKinds)
      : artifact(artifact), layout(layout), mesh(communicator.getMesh()),
        communicator(communicator), onlyKinds(onlyKinds) {}

  /// Decodes a program, and adds its collectives to the communicator.
  DecodedProgram decode(const fb::Program &program);
  /// Returns the number of copies on channels in all programs that decode() has decoded.
  uint32_t numAsyncCopies() const { return copies; }

private:
  /// A transfer that a later wait completes. `number` is the index of the collective or copy.
  struct StartedTransfer {
    uint32_t number;
    TransferKind transferKind;
  };
  void decodeBlock(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *commands,
                   DecodedProgram &into, std::unordered_map<uint32_t, StartedTransfer> &started,
                   uint32_t &number, uint64_t iterations);
  void decodeChannel(const fb::Command &command, DecodedProgram &into,
                     std::unordered_map<uint32_t, StartedTransfer> &started);
  uint32_t addCollective(const fb::Collective &collective, const char *label);
  bool isWanted(const fb::Command &command) const;

  const Artifact &artifact;
  const fb::Layout &layout;
  const Mesh &mesh;
  Communicator &communicator;
  const std::vector<std::string> &onlyKinds;
  bool keepsAll = true; ///< false if `onlyKinds` restricts the current program
  uint32_t copies = 0;
};

/// Returns the highest end offset of the states, inputs, blocks and workspace of a layout.
uint64_t residentEnd(const fb::Layout &layout, const Mesh &mesh);
/// Returns the largest number of addresses that a launch of any kernel passes to the kernel.
size_t mostBindings(const Artifact &artifact);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_DECODEDPROGRAM_H
