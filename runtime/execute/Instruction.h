//===- Instruction.h - A decoded command ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EXECUTE_INSTRUCTION_H
#define FSDPRT_EXECUTE_INSTRUCTION_H

#include "fsdprt/artifact_generated.h"

namespace fsdprt {

/// The part of the runtime that executes a transfer: the communicator (`collectives`), the device
/// (`copies`), or the worker thread for the file of offloaded states (`file`).
enum class TransferKind : uint8_t { collectives, copies, file };

/// A decoded command. The instructions of a loop's body follow the instruction of the loop.
struct Instruction {
  fb::Body kind;
  const void *body;
  const char *label;
  uint32_t number;
  uint32_t length = 0; ///< number of instructions in the body of a loop
  /// Index of the transfer that this command starts or awaits: the index of a collective in the
  /// communicator, or the index of a copy among all copies on channels.
  uint32_t collective = 0;
  TransferKind transferKind = TransferKind::collectives; ///< executor of the transfer
  bool joinsNext = false; ///< true if one launch starts this and the next collective
};

/// Returns the number of bytes that a command reads and writes, as defined in Profile.cpp.
uint64_t bytesOf(const fb::Manifest &manifest, const Instruction &instruction);
uint64_t bytesOf(const fb::Manifest &manifest, const fb::Launch &launch);

} // namespace fsdprt

#endif // FSDPRT_EXECUTE_INSTRUCTION_H
