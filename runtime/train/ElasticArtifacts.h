//===- ElasticArtifacts.h - Artifacts for other numbers of ranks -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --elastic: searches a folder for artifacts that have the model and optimizer of the
// given artifact but are compiled for other numbers of ranks. `fsdp-compile --also-mesh` writes
// such artifacts.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_ELASTICARTIFACTS_H
#define FSDPRT_TRAIN_ELASTICARTIFACTS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdprt {

class ElasticArtifacts {
public:
  /// Searches `folder`, or the working folder if `folder` is empty, for artifacts for `least` to
  /// `most` ranks that can resume saves of the artifact `path`. For the number of ranks of `path`,
  /// `path` itself is used. Throws Error if this number is not in [least, most], or if two
  /// artifacts for the same number of ranks are equally preferred.
  ElasticArtifacts(const std::string &path, std::string folder, uint64_t least, uint64_t most);

  /// Returns the artifact with the most ranks, but at most `ranks`. Throws Error if none exists.
  const std::pair<const uint64_t, std::string> &forAtMost(uint64_t ranks) const;
  /// Returns the artifact for exactly `ranks` ranks. Throws Error if none exists.
  const std::string &forRanks(uint64_t ranks) const;
  /// Returns text such as "4 ranks: gpt.fsdp, 3 ranks: gpt.shard3.fsdp".
  std::string text() const;
  /// Returns one message per ignored file that is named after the given artifact.
  const std::vector<std::string> &leftOut() const { return reasons; }
  /// Throws Error if no artifact for another number of ranks was found.
  void expectSeveral() const;

private:
  [[noreturn]] void fail(const std::string &wanted) const;

  std::string folder;
  uint64_t least, most;
  std::map<uint64_t, std::string> artifacts; ///< paths of artifacts by number of ranks
  std::vector<std::string> reasons;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_ELASTICARTIFACTS_H
