//===- Instruction.h - A decoded command ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs are walked as flat lists of these.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_INSTRUCTION_H
#define FSDPRT_EXECUTE_INSTRUCTION_H

#include "fsdprt/artifact_generated.h"

namespace fsdprt {

/// Who moves what is on a channel.
enum class TransferKind : uint8_t { collectives, copies, file };

/// A command with what is looked up once. A loop's body follows it.
struct Instruction {
  fb::Body kind;
  const void *body;
  const char *label;
  uint32_t number;
  uint32_t length = 0; // of a loop's body
  uint32_t collective =
      0; // the communicator's number, of a collective and its wait; of a copy on a channel, its own
  TransferKind transferKind = TransferKind::collectives; // of a wait: of what it ends
  bool joinsNext = false; // of a collective: one launch with the next command
};

/// What it reads and writes (Profile.cpp).
uint64_t bytesOf(const fb::Manifest &manifest, const Instruction &instruction);
uint64_t bytesOf(const fb::Manifest &manifest, const fb::Launch &launch);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_INSTRUCTION_H
