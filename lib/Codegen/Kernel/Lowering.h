//===- Lowering.h - The form of kernels and phases --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_LOWERING_H
#define FSDP_LIB_CODEGEN_KERNEL_LOWERING_H

#include "fsdp/IR/KernelImage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::fsdp {

/// Names of attributes on phase functions.
inline constexpr StringLiteral extentAttr = "fsdp.extent";
inline constexpr StringLiteral tileAttr = "fsdp.tile";

/// Fills name, bindingBytes and writes of `info` from the kernel's signature;
/// fails with a diagnostic on a kernel that breaks the contract of Pipeline.md §6.
LogicalResult describeKernel(func::FuncOp kernel, KernelInfo &info);

/// Canonicalises and removes common subexpressions.
void cleanUp(Operation *root);

/// The argument that result `index` of a kernel is written to.
BlockArgument getDestination(func::FuncOp kernel, unsigned index);

/// Makes a phase function: `body` is an empty function with the arguments of
/// lowerKernel's contract. `sharedBytes` > 0 adds the shared scratch.
func::FuncOp createPhase(OpBuilder &builder, func::FuncOp kernel, StringRef symbol, int64_t extent,
                         int64_t tile, bool shared);

/// No fast-math flag on any op; counts the ops that could have one.
LogicalResult verifyFloatContract(Operation *root, int64_t *checked = nullptr);

/// Runs both sides of branches in bodies where nothing forbids it: see
/// SpeculateBranches.cpp.
void speculateBranches(func::FuncOp kernel);
/// Writes a reduction to a value and its position as two reductions: see
/// ArgReductions.cpp.
void splitArgReductions(func::FuncOp kernel);

/// The general lowering: bufferise as it stands, plain loops.
LogicalResult lowerLoopKernel(func::FuncOp kernel, KernelInfo &info);
/// Cuts its phase into several, large ops split over the workers; fills info.phases.
SmallVector<func::FuncOp> splitLoopPhases(func::FuncOp phase, KernelInfo &info);

/// LLVM's passes at -O3 for `machine`, without unrolling, and without functions of a library.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);

/// Loads the dialects that every target needs before kernels are compiled in parallel.
void loadCodegenDialects(MLIRContext &context);
/// Gives memref<?xi8> arguments a static type (a bare pointer needs one).
void makeScratchStatic(func::FuncOp phase);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_LOWERING_H
