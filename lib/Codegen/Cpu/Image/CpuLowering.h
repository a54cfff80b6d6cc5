//===- CpuLowering.h - Phase functions to objects and images ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_IMAGE_CPULOWERING_H
#define FSDP_LIB_CODEGEN_CPU_IMAGE_CPULOWERING_H

#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp {

/// Loads the dialects that phase functions use, and registers their translations to LLVM IR.
void loadCpuDialects(MLIRContext &context);
/// Lowers loops, vectors and memrefs in `module` to the LLVM dialect.
LogicalResult lowerToLLVMDialect(ModuleOp module);
/// Appends the conversions of control flow, vectors, memrefs and functions to the LLVM dialect.
/// If `useLibm` is true, elementary functions become calls of the C library.
void addLLVMConversions(PassManager &pm, bool useLibm);

class KernelCache;
using Object = SmallVector<char, 0>;
/// Emits machine code for a module with one LLVM function per phase.
FailureOr<Object> emitObject(ModuleOp module, const KernelInfo &info, const CpuTarget &target,
                             Effort effort = Effort::Full);
/// Describes how a kernel is compiled to an object file. Each kernel is in a module of its own.
struct ObjectLowering {
  StringRef name; ///< distinguishes the objects of different lowerings in a cache
  function_ref<FailureOr<Object>(func::FuncOp, KernelInfo &)> compile;
  ArrayRef<StringRef> libraries = {}; ///< shared objects that may define symbols of the objects
};
/// Clones each kernel into a module of its own, compiles it, and links the objects. If `cache` is
/// not null, objects that it contains are not compiled again.
FailureOr<Image> compileImage(ModuleOp module, const CpuTarget &target,
                              const ObjectLowering &lowering, KernelCache *cache);
/// Links objects to a shared object. `libraries` are shared objects that may define symbols that
/// the objects use.
FailureOr<std::vector<char>> linkImage(ArrayRef<Object> objects, ArrayRef<StringRef> libraries,
                                       Location loc);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_CPU_IMAGE_CPULOWERING_H
