//===- NestEntries.h - Entries of kernels that are functions on memrefs -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an entry needs to know of its kernel is noted on the function before it is lowered to the
// LLVM dialect.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H
#define FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H

#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Notes on a function on memrefs what makeNestEntries has to know.
void describeNestEntry(func::FuncOp entry, func::FuncOp kernel, int64_t threads);
/// Makes entries of such functions, once they are of the LLVM dialect.
void makeNestEntries(ModuleOp entries);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_NESTS_NESTENTRIES_H
