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
  /// One of `pieces` pieces, `piece` bytes apart: that of the rank's index on `axes`.
  int64_t piece = 0, pieces = 1;
  ArrayAttr axes = {};

  SliceAttr getSlice() const {
    auto name = FlatSymbolRefAttr::get(BufferOp(buffer).getSymNameAttr());
    return SliceAttr::get(name.getContext(), name, offset, bytes, stride, piece, axes);
  }
  bool operator==(const Place &other) const {
    return buffer == other.buffer && offset == other.offset && bytes == other.bytes &&
           stride == other.stride && piece == other.piece && axes == other.axes;
  }
  /// Whether a kernel may be given it.
  bool isAligned() const {
    return offset % bufferAlignment == 0 && stride % bufferAlignment == 0 &&
           piece % bufferAlignment == 0;
  }
  /// Whether they share a byte in any iteration, on any rank (ranges with a stride have no end).
  bool overlaps(const Place &other) const {
    return buffer == other.buffer && (other.stride || offset < other.getEnd()) &&
           (stride || other.offset < getEnd());
  }
  int64_t getEnd() const { return offset + piece * (pieces - 1) + bytes; }
  /// Of `ranks` equal pieces of this, the one of the rank's index on `axis`; nothing when the
  /// pieces would not follow each other.
  std::optional<Place> getPiece(StringRef axis, int64_t ranks) const;
  /// What this is a piece of, on `axis`; nothing when it is none.
  std::optional<Place> getWhole(StringRef axis, int64_t ranks) const;
};

/// An `fsdp.layout` being filled by the functions that share it.
class LayoutBuilder {
public:
  LayoutBuilder(ModuleOp module, StringRef name);

  LayoutOp getLayout() { return layout; }
  /// A buffer of one program; its lifetime is set later.
  Place addBuffer(StringRef symbol, StringRef label, Category category, int64_t bytes,
                  Location loc);
  /// The place of an argument of a program: a state, an input, the step block or the rank block,
  /// found or made. Emits an error when it does not fit what another program has.
  FailureOr<Place> getArgument(func::FuncOp function, unsigned index);

private:
  Place addPersistent(StringRef symbol, const Twine &label, Category category,
                      RankedTensorType type, Location loc);
  FailureOr<Place> getState(func::FuncOp function, unsigned index);
  FailureOr<Place> getInput(func::FuncOp function, unsigned index);
  Place getControl(FlatSymbolRefAttr name, StringRef symbol, StringRef label,
                   BlockArgument argument);

  LayoutOp layout;
  OpBuilder builder;
  unsigned numStates = 0, numInputs = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PLAN_LAYOUTBUILDER_H
