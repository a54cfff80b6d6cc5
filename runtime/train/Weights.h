//===- Weights.h - Parameters from and to files -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Copies parameters between safetensors files and a session.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_WEIGHTS_H
#define FSDPRT_TRAIN_WEIGHTS_H

#include "io/Safetensors.h"
#include "train/TrainingRun.h"
#include <memory>
#include <vector>

namespace fsdprt {

/// Numbers of parameters whose initial values are from the files of --init or from the artifact.
struct WeightSources {
  uint64_t fromFile = 0, fromModel = 0;
};

/// Returns the sources for a run without --init.
WeightSources modelWeights(const fsdprt_artifact *artifact);

/// The files of --init: one .safetensors file, or the files that an .index.json names. Each file is
/// opened once, so that ranks compare and import the same content.
class InitialWeights {
public:
  /// Throws Error if a file cannot be opened or has no weights.
  void open(const std::string &path);
  const std::string &getPath() const { return path; }
  const std::vector<std::unique_ptr<SafetensorsFile>> &getFiles() const { return files; }
  /// Returns a text that is equal in two processes if their files have equal contents.
  std::string comparison() const;

private:
  std::string path;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
};

/// Sets the parameters of the ranks and the reference program. A parameter that is missing from the
/// files keeps the values that the artifact has for it, if any. Throws Error before setting any
/// parameter if names, shapes or types do not match, and at the end if a file has changed.
WeightSources importWeights(const InitialWeights &weights, const fsdprt_artifact *artifact,
                            fsdprt_session *session);

/// Writes all parameters, each from its master copy if there is one. All processes must call
/// exportWeights(). The process of rank 0 writes the file and warns about non-finite values.
void exportWeights(const std::string &path, const TrainingRun &run);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_WEIGHTS_H
