//===- Commands.h - Programs as numbered commands ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COMMANDS_H
#define FSDP_ANALYSIS_COMMANDS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// What a command does to a range.
struct Access {
  SliceAttr slice;
  bool reads = false, writes = false;
};

/// The accesses of one command (of a loop: none). A launch reads what its kernel does not mark
/// `fsdp.out`, and writes what it marks at all.
SmallVector<Access> getAccesses(Operation *command, SymbolTableCollection &tables);

/// What a human calls a command: its label, or its kind.
std::string describeCommand(Operation *command);

/// A command and its number (see FSDPProgramOps.td).
struct NumberedCommand {
  Operation *op;
  int64_t number;
  /// Numbers of the loop around it and of the last command in that; -1: none.
  int64_t loopFirst = -1, loopLast = -1;
  /// How often it runs.
  int64_t turns = 1;
};

SmallVector<NumberedCommand> numberCommands(ProgramOp program);

/// The first and the last command that needs a buffer. One that is used in a loop and outside of it
/// is needed for the whole loop; source and target of what is in flight are needed until its wait.
struct Lifetime {
  int64_t first, last;
};
llvm::MapVector<StringAttr, Lifetime> getLifetimes(ProgramOp program,
                                                   SymbolTableCollection &tables);

/// Sets the lifetimes of the buffers of `program`, which are those named `@PROGRAM.N`; erases those
/// that no command uses.
void setLifetimes(ProgramOp program, LayoutOp layout, SymbolTableCollection &tables);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COMMANDS_H
