//===- CommandGraph.cpp - Dependences between commands ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   0 gather  @p -> @w      before: -      after: 1 (reads @w), 2 (writes @p)
//   1 launch  k(@w, @y)     before: 0
//   2 launch  u(@p)         before: 0
//
// 1. Collect the ranges of buffers that each command reads or writes. A loop accesses the ranges of
//    all its commands in all iterations. If the range of an access depends on the rank, the command
//    counts as an access to the ranges of all ranks.
// 2. A command depends on an earlier command if both access the same bytes and at least one of the
//    two commands writes them.
//
// For each buffer, the time is O(n^2), where n is the number of accesses to the buffer.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/CommandGraph.h"
#include "fsdp/Analysis/Commands.h"
#include <limits>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Touch {
  unsigned command;
  int64_t begin, end;
  bool writes;
};
} // namespace

CommandGraph::CommandGraph(Block &block, SymbolTableCollection &tables) {
  DenseMap<Attribute, SmallVector<Touch>> ranges;
  auto add = [&](Operation *command, unsigned number) {
    for (const Access &access : getAccesses(command, tables)) {
      bool isSpread = access.slice.getStride() || access.slice.getPiece();
      int64_t begin = access.slice.getOffset(), end = begin + access.slice.getBytes();
      ranges[access.slice.getBuffer()].push_back(
          {number, begin, isSpread ? std::numeric_limits<int64_t>::max() : end, access.writes});
    }
  };
  for (Operation &command : block) {
    unsigned number = commands.size();
    commands.push_back(&command);
    add(&command, number);
    if (auto loop = dyn_cast<LoopOp>(command))
      for (Operation &inner : loop.getBody().front())
        add(&inner, number);
  }
  before.resize(commands.size());
  after.resize(commands.size());
  for (auto &[buffer, uses] : ranges)
    for (auto [index, later] : llvm::enumerate(uses))
      for (const Touch &earlier : ArrayRef(uses).take_front(index))
        if (earlier.command != later.command && (earlier.writes || later.writes) &&
            earlier.begin < later.end && later.begin < earlier.end)
          before[later.command].push_back(earlier.command);
  for (auto [index, list] : llvm::enumerate(before)) {
    llvm::sort(list);
    list.erase(llvm::unique(list), list.end());
    for (unsigned earlier : list)
      after[earlier].push_back(index);
  }
}
