//===- MathFunctions.h - C library functions for kernels --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lists the mathematical functions of the C library that kernels may call. Only kernels that were
// compiled with --target=reference call them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_MATHFUNCTIONS_H
#define FSDPRT_ARTIFACT_MATHFUNCTIONS_H

#include <string_view>

namespace fsdprt {

/// Returns the address of a function such as "expf", or null if the name is not in the table.
const void *findMathFunction(std::string_view name);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_MATHFUNCTIONS_H
