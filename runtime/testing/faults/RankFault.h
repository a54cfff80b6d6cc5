//===- RankFault.h - A planted fault of one rank ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares a fault for tests of lost ranks: the rank fails in a given step and phase.
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

  /// Parses a text such as "kill:1:gather:3". Throws an Error if the text is invalid.
  static RankFault parse(const std::string &text);
  bool isAt(Phase where, uint32_t which, uint64_t when) const {
    return kind != Kind::none && phase == where && rank == which && step == when;
  }
  /// Injects the fault. If the fault stops this process, returns when another process lets it
  /// continue. Does nothing for a fault of kind `nan`: the caller injects this fault, because only
  /// the caller has the gradient.
  void inject() const;
};

} // namespace fsdprt

#endif // FSDPRT_TESTING_FAULTS_RANKFAULT_H
