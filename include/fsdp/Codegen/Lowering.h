//===- Lowering.h - The steps inside Codegen --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_LOWERING_H
#define FSDP_CODEGEN_LOWERING_H

#include "fsdp/Codegen/Codegen.h"
#include "mlir/IR/PatternMatch.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::fsdp {

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

/// 2^x of an f32 (or a vector) below 2^7, in fewer steps than math.exp2: 0 below 2^-125.
Value expandSmallExp2(OpBuilder &b, Location loc, Value x);
/// Own math: see ExpandMath.cpp.
void populateExpandMathPatterns(RewritePatternSet &patterns);
/// bf16 and f16 arithmetic in f32, exact conversions: see LegaliseFloats.cpp.
void populateLegaliseFloatsPatterns(RewritePatternSet &patterns);
/// Makes i16 of bf16 once nothing computes in it.
void storeBf16AsBits(ModuleOp module);

/// LLVM's passes at -O3 for `machine`, without unrolling, and without functions of a library.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);

using Object = SmallVector<char, 0>;
/// Machine code of a module of LLVM functions, one per phase; as it stands where it is not to be
/// `optimised`.
FailureOr<Object> emitObject(ModuleOp module, const KernelInfo &info, const CpuTarget &target,
                             bool optimised = true);
/// Compiles each kernel in a module of its own by `compile`, and links.
FailureOr<Image> compileImage(ModuleOp module, const CpuTarget &target,
                              ArrayRef<StringRef> libraries,
                              function_ref<FailureOr<Object>(func::FuncOp, KernelInfo &)> compile);
/// Links objects; `libraries` are shared objects that may resolve symbols.
FailureOr<std::vector<char>> linkImage(ArrayRef<Object> objects, ArrayRef<StringRef> libraries,
                                       Location loc);

/// Loads what Codegen needs before kernels are compiled in parallel.
void loadCodegenDialects(MLIRContext &context);
/// Gives memref<?xi8> arguments a static type (a bare pointer needs one).
void makeScratchStatic(func::FuncOp phase);
/// Lowers loops, vectors and memrefs in `module` to the LLVM dialect.
LogicalResult lowerToLLVMDialect(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_LOWERING_H
