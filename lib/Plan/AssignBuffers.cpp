//===- AssignBuffers.cpp - From tensors to buffers --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces values by ranges of buffers, and ops by commands.
//
//   func.func @step(%p {state})                   fsdp.layout @arena { @state.0 64 bytes, .. }
//     %w = fsdp.unshard %p                        fsdp.program @step {
//     %y = fsdp.kernel_call @k(%w) inplace [-1]     fsdp.collective all_gather @state.0 -> @step.0
//     %q = fsdp.kernel_call @u(%p, %y) [0]    =>    fsdp.launch @k(@step.0[0, 32], @step.1[0, 32])
//     return %q {updates = 0}                       fsdp.launch @u(@state.0[0, 64], @step.1[0, 32])
//
// 1. Assign the arguments to buffers of unlimited lifetime (LayoutBuilder.cpp).
// 2. Create the flat buffer of each reduce-scatter, and choose the kernel results that kernels
//    write directly to ranges of this buffer (CollectivePlan.cpp).
// 3. Walk the ops in order (FunctionPlan.cpp).
//    - The range of a view is a part of the range of its source.
//    - A result that is computed in place gets the range of the operand that it overwrites, if no
//      value in this range is read later (Aliasing.cpp). Otherwise the operand is first copied to a
//      new range.
//    - Each sum that a loop carries has the same range in all iterations.
//    - Any other result gets a new buffer.
// 4. At the return, copy values to the ranges of the arguments that they update.
// 5. Set the lifetime of each buffer: the numbers of the first and last command that use it
//    (Commands.cpp).
//
// Takes O(ops + accesses to each buffer) time. Later passes order the commands and choose offsets
// in the arena (PackArenas.cpp).
//
//===----------------------------------------------------------------------===//

#include "FunctionPlan.h"
#include "LayoutNames.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ASSIGNBUFFERSPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringLiteral referenceProgram = "reference";

/// Erases kernels that no launch uses. A kernel that only fills with zeros, for example, has become
/// a fill command.
static void eraseUnusedKernels(ModuleOp module) {
  llvm::DenseSet<Attribute> used;
  module.walk([&](LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (kernel->hasAttr(kernelAttr) && !used.contains(kernel.getSymNameAttr()))
      kernel.erase();
}

namespace {

class AssignBuffersPass : public fsdp::impl::AssignBuffersPassBase<AssignBuffersPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef layout : {mainLayout, referenceLayout})
      if (failed(planLayout(layout)))
        return signalPassFailure();
    SymbolTableCollection tables;
    for (auto program : module.getOps<ProgramOp>())
      setLifetimes(program,
                   tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr()),
                   tables);
    eraseUnusedKernels(module);
  }

  /// Returns the functions of a layout. The function `step` is first, because its arguments define
  /// the buffers of states and inputs.
  SmallVector<func::FuncOp> getFunctions(StringRef layout) {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto name = function->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
      if (name && (name.getValue() == referenceProgram) == (layout == referenceLayout))
        functions.insert(name.getValue() == "step" ? functions.begin() : functions.end(), function);
    }
    return functions;
  }

  LogicalResult planLayout(StringRef name) {
    SmallVector<func::FuncOp> functions = getFunctions(name);
    if (functions.empty())
      return success();
    if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), name))
      return other->emitError("symbol @")
             << name << " is reserved for the arena of the programs; rename this '"
             << other->getName() << "'";
    LayoutBuilder layout(getOperation(), name);
    FunctionPlan::Counts counts;
    for (func::FuncOp function : functions) {
      if (failed(FunctionPlan(function, layout, counts).run()))
        return failure();
      function.erase();
    }
    numBuffers += counts.buffers;
    numCopies += counts.copies;
    numFills += counts.fills;
    return success();
  }
};

} // namespace
