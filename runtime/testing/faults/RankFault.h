//===- RankFault.h - A planted fault of one rank ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For tests of what happens when a rank is lost: it is lost at a place in the program, not at a
// time.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_FAULTS_RANKFAULT_H
#define FSDPRT_TESTING_FAULTS_RANKFAULT_H

#include <cstdint>
#include <string>

namespace fsdprt {

struct RankFault {
  enum class Kind { none, kill, stop, exit, hang, nan, slow };
  enum class Phase { start, gather, compute, reduce, save };

  Kind kind = Kind::none;
  Phase phase = Phase::gather;
  uint32_t rank = 0;
  uint64_t step = 0;

  /// "kill:1:gather:3". Throws Error.
  static RankFault parse(const std::string &text);
  bool isAt(Phase where, uint32_t which, uint64_t when) const {
    return kind != Kind::none && phase == where && rank == which && step == when;
  }
  /// Does it; returns when a process that was stopped goes on. `nan` is the caller's to do: it has
  /// the gradient.
  void inject() const;
};

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_RANKFAULT_H
