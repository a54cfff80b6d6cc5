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

namespace mlir::fsdp {

/// Returns the derived schedule problem of a block. `getSeconds` returns the seconds of one run of
/// a command, and `getLatency` the seconds of a collective without its bytes. `live` holds, for
/// each command in the current order, the bytes of the device's arena that are alive. Fails with an
/// error if the problem is malformed.
FailureOr<ScheduleProblem> describeBlock(const CommandGraph &graph, LayoutOp layout,
                                         llvm::function_ref<double(Operation *)> getSeconds,
                                         llvm::function_ref<double(CollectiveOp)> getLatency,
                                         ArrayRef<int64_t> live);

/// Keeps the current order and waits for each transfer directly after its start. Copies get ids
/// from `nextId` on.
void applyInOrder(const CommandGraph &graph, const ScheduleProblem &problem, int64_t &nextId);

/// Moves the commands of `block` into the order of the solver. Transfers get their channel, waits
/// and the attributes of Analysis/Schedule.h. Moves nothing and fails if the order breaks a
/// dependence.
LogicalResult applySchedule(Block &block, const CommandGraph &graph, const ScheduleProblem &problem,
                            const ScheduleSolver &solver, int64_t &nextId);

} // namespace mlir::fsdp

#endif // FSDP_PLAN_SCHEDULE_BLOCKSCHEDULE_H
