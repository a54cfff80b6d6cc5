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

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace mlir::fsdp {

/// Names of attributes of phase functions.
inline constexpr StringLiteral extentAttr = "fsdp.extent";
inline constexpr StringLiteral tileAttr = "fsdp.tile";

/// Sets the members name, bindingBytes, reads and writes of `info` according to the kernel's
/// signature. Fails with a diagnostic if the kernel breaks the contract of
/// docs/explanation/pipeline.md §6.
LogicalResult describeKernel(func::FuncOp kernel, KernelInfo &info);

/// Canonicalises `root` and eliminates common subexpressions. Values that a loop carries twice are
/// not merged: MLIR takes quadratic time for it, and LLVM merges them later.
void cleanUp(Operation *root);
/// Adds passes with the effect of cleanUp().
void addCleanUp(OpPassManager &pm);
/// Runs `pm` on `module` and verifies the result, instead of the IR after each pass of MLIR.
LogicalResult runLowering(PassManager &pm, ModuleOp module);

/// Returns the argument that result `index` is written to, or null if there is none.
BlockArgument getDestination(func::FuncOp kernel, unsigned index);

/// Creates an empty phase function before `kernel`, with the arguments that the documentation of
/// lowerKernel() lists. If `shared` is true, the function has an argument for the shared scratch
/// memory.
func::FuncOp createPhase(OpBuilder &builder, func::FuncOp kernel, StringRef symbol, int64_t extent,
                         int64_t tile, bool shared);

/// Fails with a diagnostic if any op has a fast-math flag. Increases `checked` by the number of ops
/// that can have fast-math flags.
LogicalResult verifyFloatContract(Operation *root, int64_t *checked = nullptr);

/// Replaces an scf.if in the body of a linalg op by the ops of both branches and a select, if it is
/// safe to run both branches; see SpeculateBranches.cpp.
void speculateBranches(func::FuncOp kernel);
/// Splits a reduction that yields a value and its position into two reductions; see
/// ArgReductions.cpp.
void splitArgReductions(func::FuncOp kernel);

/// Lowers any kernel (this is the general lowering): bufferises the kernel without fusing its ops,
/// and emits plain loops.
LogicalResult lowerLoopKernel(func::FuncOp kernel, KernelInfo &info);
/// Splits the function that lowerLoopKernel() created into phases, so that several workers run
/// large ops. Sets info.phases.
SmallVector<func::FuncOp> splitLoopPhases(func::FuncOp phase, KernelInfo &info);

/// The effort with which LLVM optimises a kernel.
enum class Effort {
  None,  ///< no optimisations
  Short, ///< the pipeline of -O1 without vectorisation: takes less time than the pipeline of -O3
  Full,  ///< the pipeline of -O3
};
/// Runs LLVM's pipeline of the effort for `machine`, but does not unroll loops or replace code by
/// library calls. Ends with scalariseStores(). With Effort::None, only sets the level of the code
/// generator.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, Effort effort = Effort::Full);
/// Rewrites masked stores of a single lane, whose lane is constant, as scalar stores; see
/// ScalarStores.cpp.
void scalariseStores(llvm::Module &module);

/// Loads the dialects that all targets need. Must be called before kernels are compiled in
/// parallel.
void loadCodegenDialects(MLIRContext &context);
/// Replaces the type memref<?xi8> of arguments by static types, because the calling convention with
/// bare pointers requires static types.
void makeScratchStatic(func::FuncOp phase);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_LOWERING_H
