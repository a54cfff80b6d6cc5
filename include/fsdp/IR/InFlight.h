//===- InFlight.h - Asynchronous commands -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A command is asynchronous if it is a collective on a channel other than 0, or a copy with the
// attributes `fsdp.id` and `fsdp.channel`. A later `fsdp.wait` with the same id waits for the end
// of the command:
//
//   fsdp.copy @step.host.0[0, 4096] -> @step.back.1[0, 4096]
//     {fsdp.channel = 3 : i64, fsdp.id = 7 : i64}
//   ..
//   fsdp.wait 7
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_INFLIGHT_H
#define FSDP_IR_INFLIGHT_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Attributes of an asynchronous copy: its channel, and its id, which is unique in the program.
inline constexpr StringLiteral copyChannelAttr = "fsdp.channel", copyIdAttr = "fsdp.id";

/// Returns the channel of a collective or of a copy. Returns 0 if the command is synchronous.
int64_t getChannel(Operation *command);
/// Returns the id of an asynchronous collective or copy. Returns nothing if the command is
/// synchronous.
std::optional<int64_t> getInFlightId(Operation *command);
/// Makes a copy asynchronous: sets its channel and its id.
void setInFlight(CopyOp copy, int64_t id, int64_t channel);

} // namespace mlir::fsdp

#endif // FSDP_IR_INFLIGHT_H
