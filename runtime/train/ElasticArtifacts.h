//===- ElasticArtifacts.h - Artifacts for other numbers of ranks -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --elastic: searches a folder for artifacts that were compiled from the same model and
// optimizer as the given artifact, but for other numbers of ranks. `fsdp-compile --also-mesh`
// writes such artifacts.
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
  /// Searches `folder` for artifacts that are compiled for `least` to `most` ranks and can resume
  /// saves of the artifact `path`. If `folder` is empty, searches the working folder. For the
  /// number of ranks of the artifact `path`, uses this artifact and none from the folder. Throws
  /// Error if this number of ranks is not in [least, most]. Also throws Error if two artifacts for
  /// the same number of ranks are equally preferred.
  ElasticArtifacts(const std::string &path, std::string folder, uint64_t least, uint64_t most);

  /// Returns the artifact with the most ranks, but at most `ranks`. Throws Error if none exists.
  const std::pair<const uint64_t, std::string> &forAtMost(uint64_t ranks) const;
  /// Returns the artifact for exactly `ranks` ranks. Throws Error if there is no such artifact.
  const std::string &forRanks(uint64_t ranks) const;
  /// Returns a text such as "4 ranks: gpt.fsdp, 3 ranks: gpt.shard3.fsdp".
  std::string text() const;
  /// Returns one message for each file that is named after the given artifact but was ignored.
  const std::vector<std::string> &leftOut() const { return reasons; }
  /// Throws Error if no artifact for another number of ranks was found.
  void expectSeveral() const;

private:
  [[noreturn]] void fail(const std::string &wanted) const;

  std::string folder;
  uint64_t least, most;
  std::map<uint64_t, std::string> artifacts; ///< maps numbers of ranks to the paths of artifacts
  std::vector<std::string> reasons;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_ELASTICARTIFACTS_H
