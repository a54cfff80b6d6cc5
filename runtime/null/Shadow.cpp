//===- Shadow.cpp - State of the bytes of a rank ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "null/Shadow.h"

using namespace fsdprt;

/// Returns the cell that begins at `at`, which must be in [0, size()]. If no cell begins there,
/// splits the cell that contains `at`.
std::map<uint64_t, Cell>::iterator Shadow::cut(uint64_t at) {
  auto behind = cells.lower_bound(at);
  if (behind != cells.end() && behind->first == at)
    return behind;
  return cells.emplace_hint(behind, at, std::prev(behind)->second);
}

void Shadow::write(uint64_t begin, uint64_t end, const Touch &touch) {
  if (begin >= end)
    return;
  auto last = cut(end), first = cut(begin);
  first->second.state = Cell::written;
  first->second.write = touch;
  first->second.reads.clear();
  cells.erase(std::next(first), last);
}

void Shadow::end(uint64_t begin, uint64_t end) {
  visit(begin, end, [](uint64_t, uint64_t, Cell &cell) {
    if (cell.state == Cell::written)
      cell.state = Cell::ended;
  });
}
