//===- OutputPaths.cpp - Checks of output paths -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If files exist at two paths, the paths name the same file if the files have the same device and
// inode. If no file exists at either path, the paths name the same file if their canonical forms
// are equal. The option --export may name the .safetensors file of --init, because that file is
// read before it is replaced.
//
//===----------------------------------------------------------------------===//

#include "train/OutputPaths.h"
#include "core/Error.h"
#include "io/EventFile.h"
#include "io/OutputFile.h"
#include <filesystem>
#include <vector>

using namespace fsdprt;
namespace fs = std::filesystem;

static bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  if (fs::exists(a, error) != fs::exists(b, error))
    return false;
  // Only regular files are compared, because a device such as /dev/null may be several outputs.
  if (fs::exists(a, error))
    return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  return fs::weakly_canonical(fs::absolute(a), error) ==
         fs::weakly_canonical(fs::absolute(b), error);
}

namespace {
struct NamedPath {
  std::string option;
  std::string path;
};
} // namespace

std::vector<OutputLock> fsdprt::checkOutputs(const TrainingOptions &options,
                                             const std::string &cluster) {
  std::vector<NamedPath> outputs, inputs = {{"the artifact", options.artifact}};
  if (!options.exportTo.empty()) {
    OutputFile::expectWritable(options.exportTo, true);
    outputs.push_back({"--export", options.exportTo});
  }
  if (!options.trace.empty()) {
    OutputFile::expectWritable(options.trace, true);
    outputs.push_back({"--trace", options.trace});
  }
  if (!options.profileFile.empty()) {
    OutputFile::expectWritable(options.profileFile, true);
    outputs.push_back({"--profile-file", options.profileFile});
  }
  if (!options.metrics.empty()) {
    OutputFile::expectWritable(options.metrics, false);
    outputs.push_back({"--metrics", options.metrics});
  }
  if (!options.flightRecord.empty()) {
    OutputFile::expectWritable(options.flightRecord, false);
    outputs.push_back({"--flight-record", options.flightRecord});
  }
  if (!options.tensorboard.empty())
    EventFile::expectFolder(options.tensorboard);
  for (const NamedPath &input : {NamedPath{"--init", options.init},
                                 {"--data", options.data},
                                 {"--text", options.text},
                                 {"--simulate", cluster}})
    if (!input.path.empty())
      inputs.push_back(input);
  for (const TrainingOptions::InputSource &input : options.inputs)
    inputs.push_back({"--input " + printable(input.name), input.path});
  for (const NamedPath &output : outputs)
    for (const NamedPath &input : inputs) {
      bool replaced = output.path == options.exportTo && input.path == options.init &&
                      fs::path(input.path).extension() != ".json";
      if (!replaced && isSameFile(output.path, input.path))
        badInput("%s: %s would overwrite %s", output.path.c_str(), output.option.c_str(),
                 input.option.c_str());
    }
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t j = i + 1; j < outputs.size(); ++j)
      if (isSameFile(outputs[i].path, outputs[j].path))
        badInput("%s: %s and %s are the same file", outputs[i].path.c_str(),
                 outputs[i].option.c_str(), outputs[j].option.c_str());
  std::vector<OutputLock> claims;
  for (const NamedPath &output : outputs)
    if (output.path !=
        options
            .flightRecord) // Several runs may share this file, because each writes it completely.
      claims.emplace_back(output.path, output.option.c_str());
  return claims;
}
