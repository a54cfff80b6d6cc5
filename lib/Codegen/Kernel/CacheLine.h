//===- CacheLine.h - Size of a cache line -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_CACHELINE_H
#define FSDP_LIB_CODEGEN_KERNEL_CACHELINE_H

#include <cstdint>

namespace mlir::fsdp {

/// Size in bytes of a cache line of x86-64 and AArch64 processors.
inline constexpr int64_t lineBytes = 64;

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_CACHELINE_H
