//===- AddInitPrograms.cpp - Programs that initialise the state --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.state_slot @u parameter @s       fsdp.program @init {
//   fsdp.state_slot @u momentum @m   =>     fsdp.fill @s    (padding and gaps stay zero)
//                                           fsdp.initialise @u   parameter 0 "w"
//                                           fsdp.initialise @u   parameter 1 "b"
//                                           fsdp.fill @m  }
//
// A master copy of a parameter gets the same initial values as the parameter. Takes O(states x
// parameters of their units) time.
//
//===----------------------------------------------------------------------===//

#include "LayoutNames.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDINITPROGRAMSPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class AddInitProgramsPass : public fsdp::impl::AddInitProgramsPassBase<AddInitProgramsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto layout : llvm::to_vector(module.getOps<LayoutOp>())) {
      // The program for layout `arena` is `init`. The program for `reference_arena` is
      // `reference_init`.
      StringRef prefix = layout.getSymName();
      prefix.consume_back(mainLayout);
      std::string name = (prefix + "init").str();
      if (Operation *other = symbols.lookup(name)) {
        other->emitError("symbol @")
            << name << " is reserved for the program that initialises the state; rename this '"
            << other->getName() << "'";
        return signalPassFailure();
      }
      addProgram(layout, name, symbols);
    }
  }

  void addProgram(LayoutOp layout, StringRef name, SymbolTable &symbols) {
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto program =
        ProgramOp::create(builder, layout.getLoc(), builder.getStringAttr(name),
                          FlatSymbolRefAttr::get(layout.getSymNameAttr()), FlatSymbolRefAttr());
    builder.createBlock(&program.getBody());
    for (auto state : layout.getOps<StateSlotOp>()) {
      int64_t bytes = getStorageBytes(state.getTensorType());
      auto slice =
          SliceAttr::get(builder.getContext(), state.getBufferAttr(), 0, bytes, 0, 0, ArrayAttr());
      std::string label = (state.getUnit() + " " + stringifyStateRole(state.getRole())).str();
      FillOp::create(builder, state.getLoc(), slice, builder.getStringAttr(label));
      if (state.getRole() != StateRole::parameter && state.getRole() != StateRole::master)
        continue;
      auto unit = symbols.lookup<UnitOp>(state.getUnit());
      for (unsigned index = 0; index < unit.getNumParams(); ++index) {
        InitialiseOp::create(builder, state.getLoc(), state.getUnitAttr(), state.getRoleAttr(),
                             builder.getI64IntegerAttr(index),
                             builder.getStringAttr(unit.getParam(index).getName()));
        ++numInitialised;
      }
    }
  }
};

} // namespace
