//===- Commands.h - Programs as numbered commands ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COMMANDS_H
#define FSDP_ANALYSIS_COMMANDS_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// A range of a buffer, and whether a command reads or writes the range.
struct Access {
  SliceAttr slice;
  bool reads = false, writes = false;
};

/// Returns the ranges of buffers that one command accesses. Returns an empty list for a loop. A
/// launch reads all bindings except those marked `fsdp.out`, and writes the bindings that are
/// marked `fsdp.out` or `fsdp.inout`.
SmallVector<Access> getAccesses(Operation *command, SymbolTableCollection &tables);

/// Returns a description of a command for messages. The description consists of the name of the op
/// (or, for a collective, its kind) and the label of the command.
std::string describeCommand(Operation *command);

/// A command and its number (see FSDPProgramOps.td).
struct NumberedCommand {
  Operation *op;
  int64_t number;
  /// `loopFirst` is the number of the loop around the command. `loopLast` is the number of the last
  /// command in this loop. If the command is in no loop, the two members are -1.
  int64_t loopFirst = -1, loopLast = -1;
  /// Number of times that the program runs the command.
  int64_t turns = 1;
};

SmallVector<NumberedCommand> numberCommands(ProgramOp program);

/// A buffer is needed from the command with the number `first` to the command with the number
/// `last`.
/// - A buffer that is used inside and outside a loop is needed during the whole loop.
/// - The source and the target of an asynchronous transfer are needed until the wait for the
///   transfer.
struct Lifetime {
  int64_t first, last;
};
llvm::MapVector<StringAttr, Lifetime> getLifetimes(ProgramOp program,
                                                   SymbolTableCollection &tables);

/// Sets the lifetimes of the buffers of `program`. These are the buffers whose names have the form
/// `@PROGRAM.N`. Erases each of these buffers that no command of `program` uses.
void setLifetimes(ProgramOp program, LayoutOp layout, SymbolTableCollection &tables);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COMMANDS_H
