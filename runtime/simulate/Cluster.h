//===- Cluster.h - Machines and what connects them --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a simulation runs on: fsdpcommon/ClusterFile.h, with the runtime's errors.
//
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

/// Reads a file such as examples/clusters/8xH200.json. Throws an Error that says where the file is
/// not what it has to be.
Cluster readCluster(const std::string &path);

} // namespace fsdprt

#endif // FSDPRT_SIMULATE_CLUSTER_H
