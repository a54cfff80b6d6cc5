//===- Agreement.h - Values that must be equal on all ranks ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An agreement is a text with lines "name=value"; a tab and a detail may follow the value. The
// values are hashes of the artifact, versions, the mesh, features of the processor, options and
// hashes of input files. Ranks exchange agreements when they connect, before they allocate memory.
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

  /// Adds a line. `detail`, such as the path of a file, is used in messages and not compared. Only
  /// the end of a long detail is kept. Throws Error if the text exceeds `limit`.
  void add(const std::string &name, const std::string &value, const std::string &detail = "");
  const std::string &text() const { return lines; }

private:
  std::string lines;
};

/// Throws Error with both values of the first line in which a rank differs from rank 0. `texts` has
/// the agreements of all ranks.
void compareAgreements(const std::vector<std::string> &texts);

} // namespace fsdprt

#endif // FSDPRT_CORE_AGREEMENT_H
