//===- LayoutBuilder.h - Buffers of an arena --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PLAN_LAYOUTBUILDER_H
#define FSDP_LIB_PLAN_LAYOUTBUILDER_H

#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {

/// Where a value lies.
struct Place {
  BufferOp buffer;
  int64_t offset = 0, bytes = 0, stride = 0;

  SliceAttr getSlice() const {
    auto name = FlatSymbolRefAttr::get(BufferOp(buffer).getSymNameAttr());
    return SliceAttr::get(name.getContext(), name, offset, bytes, stride);
  }
  bool operator==(const Place &other) const {
    return buffer == other.buffer && offset == other.offset && bytes == other.bytes && stride == other.stride;
  }
  /// Whether a kernel may be given it.
  bool isAligned() const { return offset % bufferAlignment == 0 && stride % bufferAlignment == 0; }
  /// Whether they share a byte in any iteration (ranges with a stride have no end).
  bool overlaps(const Place &other) const {
    return buffer == other.buffer && (other.stride || offset < other.offset + other.bytes) &&
           (stride || other.offset < offset + bytes);
  }
};

/// An `fsdp.layout` being filled by the functions that share it.
class LayoutBuilder {
public:
  LayoutBuilder(ModuleOp module, StringRef name);

  LayoutOp getLayout() { return layout; }
  /// A buffer of one program; its lifetime is set later.
  Place addBuffer(StringRef symbol, StringRef label, Category category, int64_t bytes, Location loc);
  /// The place of an argument of a program: a state, an input, the step block or the rank block, found or
  /// made. Emits an error when it does not fit what another program has.
  FailureOr<Place> getArgument(func::FuncOp function, unsigned index);

private:
  Place addPersistent(StringRef symbol, const Twine &label, Category category, RankedTensorType type, Location loc);
  FailureOr<Place> getState(func::FuncOp function, unsigned index);
  FailureOr<Place> getInput(func::FuncOp function, unsigned index);
  Place getControl(FlatSymbolRefAttr name, StringRef symbol, StringRef label, BlockArgument argument);

  LayoutOp layout;
  OpBuilder builder;
  unsigned numStates = 0, numInputs = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PLAN_LAYOUTBUILDER_H
