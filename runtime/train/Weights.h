//===- Weights.h - Parameters from and to files -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_WEIGHTS_H
#define FSDPRT_TRAIN_WEIGHTS_H

#include "io/Safetensors.h"
#include "train/TrainingRun.h"
#include <memory>
#include <vector>

namespace fsdprt {

/// `fromFile` is the number of parameters whose initial values come from the files of --init, and
/// `fromModel` is the number of parameters whose initial values come from the artifact.
struct WeightSources {
  uint64_t fromFile = 0, fromModel = 0;
};

/// Returns the sources of the initial values in a run without --init.
WeightSources modelWeights(const fsdprt_artifact *artifact);

/// The files of --init. They are a single .safetensors file, or the files that an .index.json
/// names. Each file is opened only once. The content that the ranks compare is therefore also the
/// content that they import.
class InitialWeights {
public:
  /// Throws Error if a file cannot be opened or has no weights.
  void open(const std::string &path);
  const std::string &getPath() const { return path; }
  const std::vector<std::unique_ptr<SafetensorsFile>> &getFiles() const { return files; }
  /// Returns a text by which processes compare the contents of the files.
  std::string comparison() const;

private:
  std::string path;
  std::vector<std::unique_ptr<SafetensorsFile>> files;
};

/// Sets the parameters of the ranks and of the reference program to values in the files. If a
/// parameter is not in the files, it keeps its initial values. The artifact must contain these
/// initial values. If names, shapes or types do not match, throws Error before any parameter is
/// set. If a file has changed since it was opened, throws Error at the end.
WeightSources importWeights(const InitialWeights &weights, const fsdprt_artifact *artifact,
                            fsdprt_session *session);

/// Writes the values of all parameters to the file `path`. If a parameter has a master, writes the
/// values of the master instead. All processes must call exportWeights(). The process of rank 0
/// writes the file and warns about non-finite values.
void exportWeights(const std::string &path, const TrainingRun &run);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_WEIGHTS_H
