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
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Names of attributes on kernels (see docs/Pipeline.md §6) and phase functions.
inline constexpr StringLiteral kernelAttr = "fsdp.kernel";
inline constexpr StringLiteral kindAttr = "fsdp.kind";
inline constexpr StringLiteral outAttr = "fsdp.out";
inline constexpr StringLiteral inoutAttr = "fsdp.inout";
inline constexpr StringLiteral extentAttr = "fsdp.extent";
inline constexpr StringLiteral tileAttr = "fsdp.tile";

/// One pass over [0, extent) in chunks that begin at multiples of tile. All
/// workers finish a phase before the next begins.
struct PhaseInfo {
  std::string symbol;
  int64_t extent = 1;
  int64_t tile = 1;
};

/// What the launcher of a kernel must know.
struct KernelInfo {
  std::string name;
  SmallVector<PhaseInfo> phases;
  /// Least bytes and "may be written" of each binding, in the order of the
  /// kernel's arguments (without the shared scratch).
  SmallVector<int64_t> bindingBytes;
  SmallVector<bool> writes;
  /// Scratch that all workers of a launch share; when it is not 0, its address is an
  /// additional last binding.
  int64_t sharedBytes = 0;
  /// Scratch of each worker (the workspace argument).
  int64_t workerBytes = 0;
};

/// A shared object without undefined symbols (the oracle's may need libm).
struct Image {
  std::vector<char> elf;
  std::vector<KernelInfo> kernels;
  /// Features of the CPU that the code uses, in the spelling of /proc/cpuinfo.
  std::vector<std::string> isa;
};

/// The storage type of an element: what a memref of a binding holds. i1 takes a
/// byte (0 or 1), index 8 bytes; all others stand for themselves.
Type getStorageType(Type element);
/// Bytes of a tensor or memref of static shape in memory.
int64_t getStorageBytes(ShapedType type);

/// Fills name, bindingBytes and writes of `info` from the kernel's signature;
/// fails with a diagnostic on a kernel that breaks the contract of Pipeline.md §6.
LogicalResult describeKernel(func::FuncOp kernel, KernelInfo &info);

/// Replaces a kernel on tensors by its phase functions: public func.func on
/// memrefs (of static identity layout, storage element types) in binding order,
/// then `memref<?xi8>` when info.sharedBytes > 0, then index begin, index end and
/// the worker's scratch `memref<?xi8>`; no result. Each carries fsdp.extent and
/// fsdp.tile and stands in info.phases, in the order in which they run.
/// The `kernel` op is erased.
LogicalResult lowerKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

/// Compiles every kernel (fsdp.kernel) of `module`, which is left as it is, and
/// links them. The same module gives the same bytes.
FailureOr<Image> compileCpuImage(ModuleOp module, const CpuTarget &target);

/// The oracle: upstream loops, one thread, libm; with `widen` all floating-point
/// arithmetic is done in f64 (bindings keep their types).
FailureOr<Image> compileReferenceImage(ModuleOp module, const CpuTarget &target, bool widen);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CODEGEN_H
