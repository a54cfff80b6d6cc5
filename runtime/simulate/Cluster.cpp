//===- Cluster.cpp - Reads the description of a cluster ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "simulate/Cluster.h"
#include "core/Error.h"
#include <filesystem>

using namespace fsdprt;

Cluster fsdprt::readCluster(const std::string &path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    badInput("%s: expected a cluster, found something that is not a file", path.c_str());
  fsdpcommon::JsonProblem problem;
  std::optional<Cluster> cluster = fsdpcommon::readCluster(path, problem);
  if (cluster)
    return std::move(*cluster);
  if (!problem.line)
    badInput("%s: expected a cluster file such as examples/clusters/8xH200.json: %s", path.c_str(),
             problem.message.c_str());
  badInput("%s:%u:%u: %s", path.c_str(), problem.line, problem.column, problem.message.c_str());
}
