//===- Findings.h - What the null device has to say -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A fault is reported once, where it is met first; that it was met again, in another iteration,
// step or rank, is counted.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_FINDINGS_H
#define FSDPRT_NULL_FINDINGS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdprt {

/// What is wrong; the first word of the message.
enum class Fault { race, uninitialised, lifetime, bounds, alignment, overlap, wait, order };
const char *nameOf(Fault fault);

struct Finding {
  Fault fault;
  std::string text;
  uint64_t times = 1;
};

class Findings {
public:
  /// `key`: what makes it the same fault as another one: the commands, not when and where they ran.
  void add(Fault fault, const std::string &key, const std::string &text);
  const std::vector<Finding> &all() const { return found; }

private:
  std::vector<Finding> found;
  std::map<std::string, size_t> numbers; // by fault and key
};

} // namespace fsdprt

#endif // FSDPRT_NULL_FINDINGS_H
