//===- Agreement.h - Values that must be equal on all ranks ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An agreement is a text with lines "name=value", or "name=value", a tab and a detail. The values
// must be equal on all ranks: hashes of the artifact and of input files, versions, the mesh,
// processor features, and options. Ranks exchange agreements when they connect, before they
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

  /// Adds a line. Messages contain `detail`, such as the path of a file, but details are not
  /// compared. Only the end of a long detail is kept. Throws Error if the text exceeds `limit`.
  void add(const std::string &name, const std::string &value, const std::string &detail = "");
  const std::string &text() const { return lines; }

private:
  std::string lines;
};

/// `texts` contains the agreements of all ranks. Throws Error if a line has another value on some
/// rank than on rank 0. The message contains both values of the first line for which this is the
/// case.
void compareAgreements(const std::vector<std::string> &texts);

} // namespace fsdprt

#endif // FSDPRT_CORE_AGREEMENT_H
