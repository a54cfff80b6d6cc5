//===- NestEntries.h - Entries made of functions on memrefs -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before an entry on memrefs is lowered to the LLVM dialect, its properties are recorded as
// attributes of its function.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H
#define FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H

#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/GpuCode.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Records, as attributes of `entry`, the number of threads and the arguments that are written.
void describeNestEntry(func::FuncOp entry, func::FuncOp kernel, int64_t threads);
/// Turns the LLVM functions that have the attributes of describeNestEntry() into entries.
void makeNestEntries(ModuleOp entries);

/// Attribute of a loop whose bounds are no constants: its largest number of iterations.
inline constexpr StringLiteral tripsAttr = "fsdp.trips";

/// Returns the cost of a launch of `entry`, a function on memrefs.
GpuCost costOfNestEntry(func::FuncOp entry, int64_t blocks, int64_t threads,
                        const GpuTarget &target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H
