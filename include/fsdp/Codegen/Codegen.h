//===- Codegen.h - Kernels to machine code ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the stage offers to the driver: `compileCpuImage` turns the kernel
// functions of a module into one linked image, `compileReferenceImage` does the
// same for the slow oracle. Between them and machine code stands one form:
//
//   kernel            func.func private @k(tensors..) -> tensors {fsdp.kernel}
//     lowerKernel       |
//   phase functions   func.func @k(memrefs.., [shared,] begin, end, worker)
//     emitObject        |            {fsdp.extent, fsdp.tile}
//   object            void k(void *const *bindings, int64_t begin,
//                            int64_t end, void *workspace)
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_CODEGEN_H
#define FSDP_CODEGEN_CODEGEN_H

#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/IR/KernelImage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

class KernelCache;

/// Replaces a kernel on tensors by its phase functions: public func.func on
/// memrefs (of static identity layout, storage element types) in binding order,
/// then `memref<?xi8>` when info.sharedBytes > 0, then index begin, index end and
/// the worker's scratch `memref<?xi8>`; no result. Each carries fsdp.extent and
/// fsdp.tile and stands in info.phases, in the order in which they run.
/// The `kernel` op is erased.
LogicalResult lowerKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

/// Compiles every kernel (fsdp.kernel) of `module`, which is left as it is, and
/// links them. The same module gives the same bytes. The linker, which runs in this
/// process, resets llvm::cl options to their defaults: read them before.
/// What `cache` has of them is not compiled again, and gives the same bytes.
FailureOr<Image> compileCpuImage(ModuleOp module, const CpuTarget &target,
                                 KernelCache *cache = nullptr);

/// The same without code: phases and scratch of every kernel, no image.
FailureOr<Image> measureCpuKernels(ModuleOp module, const CpuTarget &target);

/// The oracle: upstream loops, one thread, libm; with `widen` all floating-point
/// arithmetic is done in f64 (bindings keep their types).
FailureOr<Image> compileReferenceImage(ModuleOp module, const CpuTarget &target, bool widen);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CODEGEN_H
