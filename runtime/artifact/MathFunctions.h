//===- MathFunctions.h - What an oracle's kernels may call ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels compiled with --target=reference call the C library's mathematics
// instead of ours: that is their point. The loader resolves these names and no others.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_MATHFUNCTIONS_H
#define FSDPRT_ARTIFACT_MATHFUNCTIONS_H

#include <string_view>

namespace fsdprt {

/// The address of `expf` and its like; null when the name is none of them.
const void *findMathFunction(std::string_view name);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_MATHFUNCTIONS_H
