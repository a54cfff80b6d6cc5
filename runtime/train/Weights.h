//===- Weights.h - Parameters from and to files -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between safetensors files and a session.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_WEIGHTS_H
#define FSDPRT_TRAIN_WEIGHTS_H

#include "io/Safetensors.h"
#include "train/TrainingRun.h"
#include <memory>
#include <vector>

namespace fsdprt {

/// How many parameters start from a weights file, and how many from values in the artifact.
struct WeightSources {
  uint64_t fromFile = 0, fromModel = 0;
};

/// Without a weights file.
WeightSources modelWeights(const fsdprt_artifact *artifact);

/// The files of --init: one .safetensors file, or those that an .index.json names. They are opened
/// once; what ranks compare and what they load is read from the same descriptors.
class InitialWeights {
public:
  /// Throws Error when a file cannot be opened, or is not one of weights.
  void open(const std::string &path);
  const std::string &getPath() const { return path; }
  const std::vector<std::unique_ptr<SafetensorsFile>> &getFiles() const { return files; }
  /// Returns what processes compare to know that they start from the same weights.
  std::string comparison() const;

private:
  std::string path;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
};

/// Sets parameters, in the ranks and the reference. Those with values in the artifact may be
/// missing and stay as they are. Throws Error before the first is set when names or shapes do not
/// match, and when a file has changed meanwhile.
WeightSources importWeights(const InitialWeights &weights, const fsdprt_artifact *artifact,
                            fsdprt_session *session);

/// Writes all parameters, from their masters where there are any. All processes call it; that of
/// rank 0 writes, and warns of values that are not finite.
void exportWeights(const std::string &path, const TrainingRun &run);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_WEIGHTS_H
