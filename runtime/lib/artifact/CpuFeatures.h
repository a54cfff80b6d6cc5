//===- CpuFeatures.h - What this processor can execute ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From CPUID and XGETBV, in the spelling of /proc/cpuinfo.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_CPUFEATURES_H
#define FSDPRT_ARTIFACT_CPUFEATURES_H

namespace fsdprt {

enum class Feature { present, absent, unknown };

/// `unknown`: a name that this runtime does not know how to ask for.
Feature cpuFeature(const char *name);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_CPUFEATURES_H
