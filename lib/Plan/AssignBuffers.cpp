//===- AssignBuffers.cpp - From tensors to buffers --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values become ranges of buffers, and ops become commands.
//
//   func.func @step(%p {state})                   fsdp.layout @arena { @state.0 64 bytes, .. }
//     %w = fsdp.unshard %p                        fsdp.program @step {
//     %y = fsdp.kernel_call @k(%w) inplace [-1]     fsdp.collective all_gather @state.0 -> @step.0
//     %q = fsdp.kernel_call @u(%p, %y) [0]    =>    fsdp.launch @k(@step.0[0, 32], @step.1[0, 32])
//     return %q {updates = 0}                       fsdp.launch @u(@state.0[0, 64], @step.1[0, 32])
//
// 1. Place the arguments in buffers of unlimited lifetime (LayoutBuilder.cpp).
// 2. Create the flat buffer of each reduce-scatter, and choose the kernel results that are ranges
//    of this buffer (CollectivePlan.cpp).
// 3. Walk the ops in order (FunctionPlan.cpp).
//    - A view is a range of its source.
//    - A result in place has the range of the operand that it overwrites if no value in this range
//      is read later (Aliasing.cpp). Otherwise the operand is copied first.
//    - Each sum that a loop carries has one range for all iterations.
//    - Any other result gets a new buffer.
// 4. At the return, copy values to the ranges of the arguments that they update.
// 5. Set the lifetimes of the buffers, by the numbers of commands (Commands.cpp).
//
// O(ops + accesses to each buffer). Later passes order the commands and choose offsets in the arena
// (PackArenas.cpp).
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

/// Erases kernels that no launch uses, such as those of fills, which became commands.
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
      return other->emitError("takes the name @")
             << name << ", which is reserved for the arena of the programs";
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
