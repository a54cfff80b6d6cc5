//===- Codegen.h - Kernels to machine code ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the functions of Codegen that the driver calls. `compileCpuImage` compiles the kernel
// functions of a module into one linked image. `compileReferenceImage` compiles the functions as
// plain loops, whose results serve for comparisons. A kernel passes through these forms:
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

/// Replaces a kernel on tensors by its phase functions and erases `kernel`. A phase is a
/// public func.func without results. The first arguments of a phase are memrefs in binding order,
/// with a static shape, the identity layout and storage element types. They are followed by a
/// `memref<?xi8>` for the shared scratch (only if info.sharedBytes > 0), by the indices begin and
/// end, and by a `memref<?xi8>` for the scratch of the worker. Each phase has the attributes
/// fsdp.extent and fsdp.tile. info.phases lists the phases in the order of execution.
LogicalResult lowerKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

/// Compiles every kernel (fsdp.kernel) of `module` and links the objects; `module` is not changed.
/// Equal modules result in equal bytes of the image, with or without `cache`. Kernels found in
/// `cache` are not compiled again. The linker runs in this process and resets the options of
/// llvm::cl to their defaults. Callers must therefore read their options before this call.
FailureOr<Image> compileCpuImage(ModuleOp module, const CpuTarget &target,
                                 KernelCache *cache = nullptr);

/// Computes the phases and scratch sizes of every kernel without generating code. The returned
/// image has no code.
FailureOr<Image> measureCpuKernels(ModuleOp module, const CpuTarget &target);

/// Compiles the kernels to plain loops, which run in one thread and call libm. The loops are
/// emitted by upstream passes. Their results serve to check the results of compileCpuImage(). If
/// `widen` is true, all float arithmetic is in f64, but the types of bindings do not change.
/// Kernels found in `cache` are not compiled again.
FailureOr<Image> compileReferenceImage(ModuleOp module, const CpuTarget &target, bool widen,
                                       KernelCache *cache = nullptr);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CODEGEN_H
