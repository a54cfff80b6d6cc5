//===- Reconvergence.cpp - Post-dominators of branches ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the immediate post-dominator of each branch: the first instruction that lies on all
// paths from the branch to the end of the program.
//
//  1. Number the instructions by a depth-first walk from the end of the program against the control
//     flow.
//  2. Intersect the post-dominators of the successors of each instruction, until nothing changes
//     (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm").
//
// Instructions without a path to the end (in endless loops) have no post-dominator.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Decoder.h"

using namespace fsdprt::emulate;

namespace {
class PostDominators {
public:
  explicit PostDominators(const std::vector<Instruction> &code);
  uint32_t of(uint32_t node) const { return parents[node]; }

private:
  template <typename Visit>
  void forFollowing(uint32_t node, Visit visit) const;
  void orderFromEnd();
  uint32_t meet(uint32_t a, uint32_t b) const;

  const std::vector<Instruction> &code;
  uint32_t end;
  std::vector<uint32_t> order, numbers, parents; ///< the end of the program has the highest number
};
} // namespace

/// Visits the successors of an instruction. The end of the program is a separate node, `end`.
template <typename Visit>
void PostDominators::forFollowing(uint32_t node, Visit visit) const {
  const Instruction &instruction = code[node];
  if (instruction.flow == Flow::Exit) {
    visit(end);
    if (!instruction.guard)
      return;
  } else if (instruction.flow == Flow::Branch) {
    visit(instruction.target);
    if (!instruction.guard)
      return;
  }
  if (node + 1 < end)
    visit(node + 1);
}

void PostDominators::orderFromEnd() {
  std::vector<std::vector<uint32_t>> preceding(end + 1);
  for (uint32_t node = 0; node < end; ++node)
    forFollowing(node, [&](uint32_t next) { preceding[next].push_back(node); });
  numbers.assign(end + 1, nowhere);
  std::vector<std::pair<uint32_t, size_t>> stack{{end, 0}};
  std::vector<bool> isSeen(end + 1);
  isSeen[end] = true;
  while (!stack.empty()) {
    auto &[node, child] = stack.back();
    if (child < preceding[node].size()) {
      uint32_t next = preceding[node][child++];
      if (!isSeen[next]) {
        isSeen[next] = true;
        stack.push_back({next, 0});
      }
      continue;
    }
    numbers[node] = order.size();
    order.push_back(node);
    stack.pop_back();
  }
}

uint32_t PostDominators::meet(uint32_t a, uint32_t b) const {
  while (a != b) {
    while (numbers[a] < numbers[b])
      a = parents[a];
    while (numbers[b] < numbers[a])
      b = parents[b];
  }
  return a;
}

PostDominators::PostDominators(const std::vector<Instruction> &code)
    : code(code), end(code.size()) {
  orderFromEnd();
  parents.assign(end + 1, nowhere);
  parents[end] = end;
  for (bool isChanging = true; isChanging;) {
    isChanging = false;
    for (size_t i = order.size() - 1; i-- > 0;) {
      uint32_t node = order[i], parent = nowhere;
      forFollowing(node, [&](uint32_t next) {
        if (parents[next] != nowhere)
          parent = parent == nowhere ? next : meet(parent, next);
      });
      isChanging |= parents[node] != parent;
      parents[node] = parent;
    }
  }
}

void fsdprt::emulate::findMeetingPoints(std::vector<Instruction> &code) {
  PostDominators dominators(code);
  for (uint32_t node = 0; node < code.size(); ++node) {
    Instruction &instruction = code[node];
    if (instruction.flow != Flow::Branch)
      continue;
    uint32_t parent = dominators.of(node);
    instruction.meet = parent == code.size() ? nowhere : parent;
  }
}
