//===- CommandGraph.h - Dependences between commands ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COMMANDGRAPH_H
#define FSDP_ANALYSIS_COMMANDGRAPH_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// The commands of one block of a program and their dependences. Two commands depend on each other
/// if one writes bytes that the other reads or writes. A loop counts as one command.
class CommandGraph {
public:
  CommandGraph(Block &block, SymbolTableCollection &tables);

  ArrayRef<Operation *> getCommands() const { return commands; }
  /// Return the sorted indices of the commands that must run before (getBefore) or after (getAfter)
  /// the command `index`.
  ArrayRef<unsigned> getBefore(unsigned index) const { return before[index]; }
  ArrayRef<unsigned> getAfter(unsigned index) const { return after[index]; }

private:
  SmallVector<Operation *> commands;
  SmallVector<SmallVector<unsigned, 4>> before, after;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COMMANDGRAPH_H
