//===- InFlight.h - Commands that a wait ends -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A collective on a channel, or a copy that carries `fsdp.id` and `fsdp.channel`:
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

/// The channel of a copy, 0: none, and its id, which no other copy and no collective of its program
/// has.
inline constexpr StringLiteral copyChannelAttr = "fsdp.channel", copyIdAttr = "fsdp.id";

/// 0 of a command that is done at once.
int64_t getChannel(Operation *command);
/// The id of a collective or a copy on a channel; nothing of a command that is done at once.
std::optional<int64_t> getInFlightId(Operation *command);
/// Makes a copy one that a wait for `id` ends.
void setInFlight(CopyOp copy, int64_t id, int64_t channel);

} // namespace mlir::fsdp

#endif // FSDP_IR_INFLIGHT_H
