//===- CpuFeatures.h - Features of this processor ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Detects features of the processor with the instructions CPUID and XGETBV. Features have the names
// that they have in /proc/cpuinfo.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_CPUFEATURES_H
#define FSDPRT_ARTIFACT_CPUFEATURES_H

#include <cstdint>
#include <functional>

namespace fsdprt {

enum class Feature { present, absent, unknown };

/// Returns `present` or `absent`, or `unknown` if the runtime cannot detect the feature `name`.
/// Features that the environment variable FSDPRT_HIDE_FEATURES lists ("avx512f,avx512_bf16") count
/// as absent, so that tests can check how artifacts for newer processors are refused. Throws Error
/// if the variable lists an unknown feature.
Feature cpuFeature(const char *name);

#if defined(__x86_64__)
/// Functions that execute the instructions CPUID and XGETBV. Tests replace these functions.
struct Processor {
  std::function<bool(uint32_t leaf, uint32_t subleaf, uint32_t (&registers)[4])>
      cpuid; ///< executes CPUID for a leaf; returns false if the processor lacks this leaf
  std::function<uint32_t()> savedStates; ///< returns the low half of XCR0; requires OSXSAVE
};
/// Does the same as cpuFeature(name), but with the functions of `processor` instead of the
/// instructions.
Feature cpuFeature(const char *name, const Processor &processor);
#endif

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_CPUFEATURES_H
