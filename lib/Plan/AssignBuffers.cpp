//===- AssignBuffers.cpp - From tensors to buffers --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A value becomes a range of a buffer, an op a command.
//
//   func.func @step(%p {state})                   fsdp.layout @arena { @state.0 64 bytes, .. }
//     %w = fsdp.unshard %p                        fsdp.program @step {
//     %y = fsdp.kernel_call @k(%w) inplace [-1]     fsdp.collective all_gather @state.0 -> @step.0
//     %q = fsdp.kernel_call @u(%p, %y) [0]    =>    fsdp.launch @k(@step.0[0, 32], @step.1[0, 32])
//     return %q {updates = 0}                       fsdp.launch @u(@state.0[0, 64], @step.1[0, 32])
//
//  1. Arguments lie in buffers that always live (LayoutBuilder.cpp).
//  2. Reserve the flat buffer of each reduce-scatter and the kernel results that are
//     written straight into it (CollectivePlan.cpp).
//  3. Walk the ops in order (FunctionPlan.cpp). A view lies in its source. A result in
//     place takes its operand's range if no value that lies there is read later
//     (Aliasing.cpp says until when); otherwise the operand is copied first.
//     A loop carries its sums in one place each. All else gets a new buffer.
//  4. At the return, what is not where it belongs is moved there.
//  5. Lifetimes of the buffers, on the line of commands (Commands.cpp).
//
// O(ops + accesses to each buffer). Not done here: the order of commands, and offsets
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

/// Kernels that no launch uses: fills became commands.
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

  /// Functions of one layout, the step first: what it has decides.
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
             << name << ", which the arena of the programs needs";
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
