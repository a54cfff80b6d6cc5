//===- Cluster.h - Reads the description of a cluster -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_SIMULATE_CLUSTER_H
#define FSDPRT_SIMULATE_CLUSTER_H

#include "fsdpcommon/ClusterFile.h"

namespace fsdprt {
using fsdpcommon::Cluster;
using fsdpcommon::ClusterLink;
using fsdpcommon::LinkRate;
using fsdpcommon::RoundSize;
using fsdpcommon::SwitchReduce;

/// Reads a cluster file, such as examples/clusters/8xH200.json. If the file is invalid, throws
/// Error with the position of the first problem.
Cluster readCluster(const std::string &path);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_CLUSTER_H
