//===- Codegen.h - Kernels to machine code ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the interface of Codegen to the driver. `compileCpuImage` compiles the kernel functions
// of a module into one linked image. `compileReferenceImage` compiles the functions as plain loops,
// for comparisons of results. A kernel passes through these forms:
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
/// public func.func without results. The arguments of a phase are memrefs (static identity layout,
/// storage element types) in binding order, then `memref<?xi8>` when info.sharedBytes > 0, then
/// index begin, index end and the worker's scratch `memref<?xi8>`. Each phase has the attributes
/// fsdp.extent and fsdp.tile. info.phases lists the phases in the order in which they run.
LogicalResult lowerKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

/// Compiles every kernel (fsdp.kernel) of `module` and links the objects; `module` is not changed.
/// Equal modules result in equal bytes, with or without `cache`. Kernels found in `cache` are not
/// compiled again. The linker runs in this process and resets llvm::cl options to their defaults,
/// so read the options before the call.
FailureOr<Image> compileCpuImage(ModuleOp module, const CpuTarget &target,
                                 KernelCache *cache = nullptr);

/// Computes the phases and scratch sizes of every kernel without generating code. The returned
/// image has no code.
FailureOr<Image> measureCpuKernels(ModuleOp module, const CpuTarget &target);

/// Compiles the kernels for comparisons: upstream passes emit plain loops for one thread that call
/// libm. If `widen` is true, all arithmetic on floats is in f64, but bindings keep their types.
FailureOr<Image> compileReferenceImage(ModuleOp module, const CpuTarget &target, bool widen);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CODEGEN_H
