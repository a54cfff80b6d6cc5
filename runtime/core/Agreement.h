//===- Agreement.h - Values that must be equal on all ranks ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An agreement is a text of lines. A line is "name=value", or "name=value" followed by a tab and a
// detail. A value is, for example, the hash of a file, a version, the mesh, or an option. All
// values must be equal on all ranks. Ranks exchange agreements when they connect, before they
// allocate memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_AGREEMENT_H
#define FSDPRT_CORE_AGREEMENT_H

#include <string>
#include <vector>

namespace fsdprt {

class Agreement {
public:
  /// Largest size of the text in bytes.
  static constexpr size_t limit = 6000;

  /// Adds a line. `detail`, such as the path of a file, appears in messages but is not compared.
  /// Only the end of a long detail is kept. Throws Error if the text exceeds `limit`.
  void add(const std::string &name, const std::string &value, const std::string &detail = "");
  const std::string &text() const { return lines; }

private:
  std::string lines;
};

/// Compares `texts`, which contains the agreements of all ranks. Throws Error if a value of some
/// rank differs from the value of rank 0. The message contains both values for the first such
/// difference.
void compareAgreements(const std::vector<std::string> &texts);

} // namespace fsdprt

#endif // FSDPRT_CORE_AGREEMENT_H
