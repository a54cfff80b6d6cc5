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

#include <cstdint>
#include <functional>

namespace fsdprt {

enum class Feature { present, absent, unknown };

/// `unknown`: a name that this runtime does not know how to ask for. `absent` also for what
/// FSDPRT_HIDE_FEATURES names, "avx512f,avx512_bf16": an artifact for a newer machine is refused
/// then as an older one refuses it. Throws Error when a name there is unknown.
Feature cpuFeature(const char *name);

#if defined(__x86_64__)
/// What the instructions CPUID and XGETBV say.
struct Processor {
  std::function<bool(uint32_t leaf, uint32_t subleaf, uint32_t (&registers)[4])>
      cpuid;                             ///< false: no such leaf
  std::function<uint32_t()> savedStates; ///< by the operating system, where it tells (OSXSAVE)
};
/// Of another processor than this one.
Feature cpuFeature(const char *name, const Processor &processor);
#endif

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_CPUFEATURES_H
