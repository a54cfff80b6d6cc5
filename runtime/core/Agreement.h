//===- Agreement.h - What all ranks have to say the same of ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lines of "name=value", with a tab and a detail after some, exchanged when ranks meet, before they
// take memory: artifact, versions, mesh, processor, and the options and contents of files that have
// to be the same.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_AGREEMENT_H
#define FSDPRT_CORE_AGREEMENT_H

#include <string>
#include <vector>

namespace fsdprt {

class Agreement {
public:
  /// The most bytes that an agreement's text may have.
  static constexpr size_t limit = 6000;

  /// `detail` is for the message and not compared: the path of a file, say. Of a long one the end
  /// is kept.
  void add(const std::string &name, const std::string &value, const std::string &detail = "");
  const std::string &text() const { return lines; }

private:
  std::string lines;
};

/// Throws Error at the first line in which a rank differs from rank 0; it names both values.
/// `texts` are of all ranks.
void compareAgreements(const std::vector<std::string> &texts);

} // namespace fsdprt

#endif // FSDPRT_CORE_AGREEMENT_H
