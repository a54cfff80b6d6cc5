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
/// launch reads the bindings that are not marked `fsdp.out`, and writes those marked `fsdp.out` or
/// `fsdp.inout`.
SmallVector<Access> getAccesses(Operation *command, SymbolTableCollection &tables);

/// Returns a description of a command for messages. It consists of the name of the op, or the kind
/// of a collective, and the label of the command.
std::string describeCommand(Operation *command);

/// A command and its number (see FSDPProgramOps.td).
struct NumberedCommand {
  Operation *op;
  int64_t number;
  /// Number of the loop around the command, and number of the last command in that loop. Both are
  /// -1 if the command is in no loop.
  int64_t loopFirst = -1, loopLast = -1;
  /// Number of times that the program runs the command.
  int64_t turns = 1;
};

SmallVector<NumberedCommand> numberCommands(ProgramOp program);

/// Number of the first command that needs a buffer, and number of the last command that needs it.
/// - A buffer that is used inside and outside a loop is needed during the whole loop.
/// - The source and the target of an asynchronous transfer are needed until the wait for the
///   transfer.
struct Lifetime {
  int64_t first, last;
};
llvm::MapVector<StringAttr, Lifetime> getLifetimes(ProgramOp program,
                                                   SymbolTableCollection &tables);

/// Sets the lifetimes of the buffers of `program`. These are the buffers whose names have the form
/// `@PROGRAM.N`. Erases those of them that no command of `program` uses.
void setLifetimes(ProgramOp program, LayoutOp layout, SymbolTableCollection &tables);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COMMANDS_H
