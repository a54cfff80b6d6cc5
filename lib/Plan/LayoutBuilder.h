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
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {

/// Place of a value: a range of a buffer, in bytes.
struct Place {
  BufferOp buffer;
  int64_t offset = 0, bytes = 0, stride = 0;
  /// If `pieces` > 1, the place is one of `pieces` pieces of a range. The pieces begin `piece`
  /// bytes apart. The rank's index on `axes` selects the piece.
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
  /// Returns true if a kernel may use the place as a binding.
  bool isAligned() const {
    return offset % bufferAlignment == 0 && stride % bufferAlignment == 0 &&
           piece % bufferAlignment == 0;
  }
  /// Returns true if the two places may have a byte in common in any iteration, on any rank. A
  /// place whose offset depends on the iteration (`stride` is not 0) counts as unbounded.
  bool overlaps(const Place &other) const {
    return buffer == other.buffer && (other.stride || offset < other.getEnd()) &&
           (stride || other.offset < getEnd());
  }
  int64_t getEnd() const { return offset + piece * (pieces - 1) + bytes; }
  /// Divides this place into `ranks` equal pieces and returns the piece that the rank's index on
  /// `axis` selects. Returns nothing if a piece would not be contiguous.
  std::optional<Place> getPiece(StringRef axis, int64_t ranks) const;
  /// Returns the place of which this place is a piece, as the inverse of getPiece(). Returns
  /// nothing if this place is not a piece in the sense of getPiece().
  std::optional<Place> getWhole(StringRef axis, int64_t ranks) const;
};

/// Builds an `fsdp.layout` that the programs of several functions use.
class LayoutBuilder {
public:
  LayoutBuilder(ModuleOp module, StringRef name);

  LayoutOp getLayout() { return layout; }
  /// Adds a buffer of one program. Its lifetime is set later.
  Place addBuffer(StringRef symbol, StringRef label, Category category, int64_t bytes,
                  Location loc);
  /// Returns the place of an argument of a program (a state, an input, the step block or the rank
  /// block). Adds a buffer for the argument if no earlier program has it. Fails with an error if
  /// another program has the argument with a different type.
  FailureOr<Place> getArgument(func::FuncOp function, unsigned index);

private:
  Place addPersistent(StringRef symbol, const Twine &label, Category category,
                      RankedTensorType type, Location loc);
  FailureOr<Place> findArgument(func::FuncOp function, unsigned index);
  /// Reports that two programs have a state or input of the same name, but with different types.
  /// `buffer` is the name of the buffer that the first program uses, `found` is the type in the
  /// first program, and `other` is the location of the buffer.
  InFlightDiagnostic emitClash(func::FuncOp function, unsigned index, Type found, StringRef buffer,
                               Location other);
  FailureOr<Place> getState(func::FuncOp function, unsigned index);
  FailureOr<Place> getInput(func::FuncOp function, unsigned index);
  Place getControl(FlatSymbolRefAttr name, StringRef symbol, StringRef label,
                   BlockArgument argument);

  LayoutOp layout;
  OpBuilder builder;
  /// Maps the buffer of an argument to the name of the first function that has the argument.
  llvm::StringMap<std::string> firstUsers;
  unsigned numStates = 0, numInputs = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PLAN_LAYOUTBUILDER_H
