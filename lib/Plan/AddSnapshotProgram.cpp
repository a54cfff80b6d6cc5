//===- AddSnapshotProgram.cpp - The program that copies the state -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.state_slot @u parameter @s       fsdp.program @snapshot {
//   fsdp.state_slot @u momentum @m   =>     fsdp.copy @s -> @snapshot.0
//                                           fsdp.copy @m -> @snapshot.1  }
//
// Each state gets a buffer of equal size and unlimited lifetime in host memory. The runtime runs
// the program between two steps. After that, the runtime writes the contents of these buffers to
// the files of a save while the next steps run. No other program uses these buffers. They are
// created after all other buffers, so that they are adjacent in the host's arena.
//
// Takes O(states) time.
//
//===----------------------------------------------------------------------===//

#include "LayoutNames.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ADDSNAPSHOTPROGRAMPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class AddSnapshotProgramPass
    : public fsdp::impl::AddSnapshotProgramPassBase<AddSnapshotProgramPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto layout = module.lookupSymbol<LayoutOp>(mainLayout);
    if (!layout || layout.getOps<StateSlotOp>().empty())
      return;
    if (Operation *other = symbols.lookup("snapshot")) {
      other->emitError("symbol @snapshot is reserved for the program that copies the state; rename "
                       "this '")
          << other->getName() << "'";
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto program =
        ProgramOp::create(builder, layout.getLoc(), builder.getStringAttr("snapshot"),
                          FlatSymbolRefAttr::get(layout.getSymNameAttr()), FlatSymbolRefAttr());
    builder.createBlock(&program.getBody());
    SymbolTable buffers(layout);
    for (auto state : llvm::to_vector(layout.getOps<StateSlotOp>()))
      copyState(state, layout, buffers, builder);
  }

  /// Adds the buffer for the copy of a state, and the command that copies the state.
  void copyState(StateSlotOp state, LayoutOp layout, SymbolTable &buffers, OpBuilder &builder) {
    int64_t bytes = getStorageBytes(state.getTensorType());
    std::string label =
        ("snapshot of " + state.getUnit() + " " + stringifyStateRole(state.getRole())).str();
    OpBuilder atEnd = OpBuilder::atBlockEnd(&layout.getBody().front());
    auto buffer = BufferOp::create(atEnd, state.getLoc(), "snapshot", label, Category::snapshot,
                                   bytes, IntegerAttr(), nullptr, IntegerAttr(), IntegerAttr(),
                                   /*host=*/true);
    buffers.insert(buffer); // makes the name of the buffer unique
    auto slice = [&](FlatSymbolRefAttr of) {
      return SliceAttr::get(builder.getContext(), of, 0, bytes, 0, 0, ArrayAttr());
    };
    CopyOp::create(builder, state.getLoc(), slice(state.getBufferAttr()),
                   slice(FlatSymbolRefAttr::get(buffer.getSymNameAttr())),
                   builder.getStringAttr(label));
    ++numCopied;
    snapshotBytes += bytes;
  }
};

} // namespace
