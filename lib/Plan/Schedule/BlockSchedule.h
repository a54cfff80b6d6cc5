//===- BlockSchedule.h - Starts and waits in one block of a program -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the schedule problem of a block, and applies the solution to the block.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_SCHEDULE_BLOCKSCHEDULE_H
#define FSDP_PLAN_SCHEDULE_BLOCKSCHEDULE_H

#include "Schedule/ScheduleSolver.h"
#include "fsdp/Analysis/CommandGraph.h"
#include "fsdp/Analysis/Cost.h"

namespace mlir::fsdp {

/// Returns the schedule problem of a block, after calling derive() on the problem. `getSeconds`
/// returns the seconds of one run of a command. `model` gives the other costs. `live` holds, for
/// each command in the current order, how many bytes of the device's arena are alive at the
/// command. Fails with an error if the problem is malformed.
FailureOr<ScheduleProblem> describeBlock(const CommandGraph &graph, LayoutOp layout,
                                         llvm::function_ref<double(Operation *)> getSeconds,
                                         CostModel &model, ArrayRef<int64_t> live);

/// Keeps the current order of the commands, and inserts the wait for each transfer directly after
/// the transfer's start. Copies get the ids `nextId`, `nextId` + 1, and so on.
void applyInOrder(const CommandGraph &graph, const ScheduleProblem &problem, int64_t &nextId);

/// Moves the commands of `block` into the order of the solver. Sets the channel of each transfer
/// and the attributes of Analysis/Schedule.h, and inserts the waits. If the solver's order breaks a
/// dependence, fails without moving a command.
LogicalResult applySchedule(Block &block, const CommandGraph &graph, const ScheduleProblem &problem,
                            const ScheduleSolver &solver, int64_t &nextId);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_SCHEDULE_BLOCKSCHEDULE_H
