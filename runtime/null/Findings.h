//===- Findings.h - Faults found by the null device -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collects faults. Each fault is reported at its first occurrence. Further occurrences of the
// fault, in other iterations, steps or ranks, are only counted.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_FINDINGS_H
#define FSDPRT_NULL_FINDINGS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdprt {

/// The kind of a fault. The name of the kind is the first word of the message.
enum class Fault { race, uninitialised, lifetime, bounds, alignment, overlap, wait, order };
const char *nameOf(Fault fault);

struct Finding {
  Fault fault;
  std::string text;
  uint64_t times = 1;
};

class Findings {
public:
  /// If a finding with the same `fault` and the same `key` exists, increments its number of
  /// occurrences. Otherwise adds a finding. `key` names the commands that cause the fault, but
  /// neither the run nor the rank.
  void add(Fault fault, const std::string &key, const std::string &text);
  const std::vector<Finding> &all() const { return found; }

private:
  std::vector<Finding> found;
  std::map<std::string, size_t> numbers; // index into `found`, by fault and key
};

} // namespace fsdprt

#endif // FSDPRT_NULL_FINDINGS_H
