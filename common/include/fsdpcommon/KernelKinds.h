//===- KernelKinds.h - Names of kinds of kernels ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_KERNELKINDS_H
#define FSDPCOMMON_KERNELKINDS_H

namespace fsdpcommon {

/// Names of the kinds of kernels, in the order of ClusterKind (lib/Fuse/Clusters.h). The last name,
/// `memory`, stands for fills and copies within device memory, which are not kernels.
inline constexpr const char *kernelKinds[] = {
    "map", "row", "column", "contract", "attention", "scatter", "scalar", "copy", "memory"};

} // namespace fsdpcommon

#endif // FSDPCOMMON_KERNELKINDS_H
