//===- Instruction.h - A decoded command ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs are decoded to flat lists of instructions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_INSTRUCTION_H
#define FSDPRT_EXECUTE_INSTRUCTION_H

#include "fsdprt/artifact_generated.h"

namespace fsdprt {

/// The executor of a transfer: the communicator, the device, or the file worker.
enum class TransferKind : uint8_t { collectives, copies, file };

/// A decoded command. A loop's body follows the loop.
struct Instruction {
  fb::Body kind;
  const void *body;
  const char *label;
  uint32_t number;
  uint32_t length = 0; // number of instructions of a loop's body
  /// Number of the transfer that this command starts or waits for: the communicator's index of a
  /// collective, or the number of a copy on a channel.
  uint32_t collective = 0;
  TransferKind transferKind = TransferKind::collectives; // executor of that transfer
  bool joinsNext = false; // this collective forms one launch with the next command
};

/// Returns the bytes that a command reads and writes (Profile.cpp).
uint64_t bytesOf(const fb::Manifest &manifest, const Instruction &instruction);
uint64_t bytesOf(const fb::Manifest &manifest, const fb::Launch &launch);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_INSTRUCTION_H
