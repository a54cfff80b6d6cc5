//===- ProgramVerifiers.cpp - Verifiers of programs --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verifies kernel calls and programs. (C1), (S1), ... refer to the constraints that the
// descriptions of the ops list.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the kernel function that an op names. Emits an error (C1) if no kernel has this name.
static FailureOr<func::FuncOp> lookUpKernel(Operation *op, FlatSymbolRefAttr name,
                                            SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (kernel && kernel->hasAttr(kernelAttr))
    return kernel;
  std::string expected = ("a function with '" + kernelAttr + "'").str();
  if (!kernel)
    return emitWrongSymbol(op, name, expected, tables);
  return op->emitOpError("expected ")
         << name << " to be " << expected << ", found a function without it";
}

/// Returns a text that states which of the attributes `fsdp.out` and `fsdp.inout` an argument of a
/// kernel has.
static std::string describeMark(func::FuncOp kernel, unsigned argument) {
  for (StringRef name : {outAttr, inoutAttr})
    if (auto index = kernel.getArgAttrOfType<IntegerAttr>(argument, name))
      return ("'" + name + " = " + Twine(index.getInt()) + "'").str();
  return ("neither '" + outAttr + "' nor '" + inoutAttr + "'").str();
}

LogicalResult KernelCallOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<func::FuncOp> kernel = lookUpKernel(*this, getKernelAttr(), tables); // (C1)
  if (failed(kernel))
    return failure();
  if (!llvm::equal(kernel->getResultTypes(), getResultTypes())) // (C3)
    return emitOpError("expected the result types of ")
           << getKernelAttr() << ", (" << kernel->getResultTypes() << "), found ("
           << getResultTypes() << ")";
  if (getInplace().size() != getNumResults()) // (C2)
    return emitOpError("'inplace' expected ") << describeCount(getNumResults(), "entry", "entries")
                                              << ", one per result, found " << getInplace().size();
  SmallVector<Type> types(getOperandTypes());
  SmallVector<std::pair<unsigned, StringRef>> marks;
  for (auto [result, operand] : llvm::enumerate(getInplace())) {
    marks.push_back({operand < 0 ? types.size() : operand, operand < 0 ? outAttr : inoutAttr});
    if (operand < 0)
      types.push_back(getResult(result).getType());
  }
  if (kernel->getArgumentTypes() != ArrayRef<Type>(types)) // (C2)
    return emitOpError("expected the operands, followed by the results whose entry in 'inplace' "
                       "is -1, to have the argument types of ")
           << getKernelAttr() << ", (" << kernel->getArgumentTypes() << "), found (" << types
           << ")";
  for (auto [result, mark] : llvm::enumerate(marks)) {
    auto found = mark.first < types.size()
                     ? kernel->getArgAttrOfType<IntegerAttr>(mark.first, mark.second)
                     : nullptr;
    if (!found || found.getInt() != static_cast<int64_t>(result)) // (C2)
      return emitOpError("expected argument ")
             << mark.first << " of " << getKernelAttr() << ", the destination of result " << result
             << ", to have '" << mark.second << " = " << result << "', found "
             << describeMark(*kernel, mark.first);
  }
  return success();
}

static bool isCommand(Operation &op) {
  return isa<LaunchOp, CollectiveOp, WaitOp, CopyOp, FillOp, InitialiseOp, LoopOp>(op);
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom<LayoutOp>(*this, getLayoutAttr())) // (C1)
    return emitWrongSymbol(*this, getLayoutAttr(), "an 'fsdp.layout'", tables);
  if (getMeshAttr() && !tables.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr())) // (C1)
    return emitWrongSymbol(*this, getMeshAttr(), "an 'fsdp.mesh'", tables);
  llvm::DenseSet<int64_t> ids;
  WalkResult unique = walk([&](Operation *op) {
    auto collective = dyn_cast<CollectiveOp>(op);
    std::optional<int64_t> id = collective ? collective.getId() : getInFlightId(op);
    if (!id || ids.insert(*id).second)
      return WalkResult::advance();
    op->emitOpError("has id ") // violates (C4) of collectives or (C3) of copies
        << *id << ", like an earlier operation; expected an id that no other collective or "
        << "asynchronous copy of the program has";
    return WalkResult::interrupt();
  });
  if (unique.wasInterrupted())
    return failure();
  for (Operation &op : getBody().front())
    if (!isCommand(op)) // (C2)
      return op.emitOpError("is not allowed in 'fsdp.program'; expected only commands, such as "
                            "'fsdp.launch', 'fsdp.collective' and 'fsdp.copy'");
  return success();
}

LogicalResult LoopOp::verify() {
  if (static_cast<int64_t>(getCount()) < 1) // (C1)
    return emitOpError("expected at least one iteration, found ")
           << static_cast<int64_t>(getCount());
  for (Operation &op : getBody().front())
    if (!isCommand(op) || isa<LoopOp>(op)) // (C2)
      return op.emitOpError(
          "is not allowed in 'fsdp.loop'; expected commands other than 'fsdp.loop'");
  return success();
}

/// Returns true if `axis` denotes groups of neighbours, as "shard:2" and "context" do.
static bool isGroup(StringRef axis) { return axis.contains(':') || axis == contextAxis; }

/// Returns whether all of `axes` are axes of the mesh. A group of neighbours ("shard:2") is valid
/// if it is the only element of `axes`.
static bool areAxes(MeshOp mesh, ArrayAttr axes) {
  return mesh && axes && llvm::all_of(axes, [&](Attribute axis) {
           auto name = dyn_cast<StringAttr>(axis);
           return name && mesh.hasAxis(name) && (axes.size() == 1 || !isGroup(name));
         });
}

/// Emits the error that some of `axes` are not axes of the program's mesh.
static LogicalResult emitWrongAxes(Operation *op, ArrayAttr axes) {
  for (auto axis : axes.getAsRange<StringAttr>())
    if (axes.size() > 1 && isGroup(axis))
      return op->emitOpError("expected a group of neighbours, ")
             << axis << ", to be the only entry of the axes, found " << axes;
  return op->emitOpError("expected names of axes of the program's mesh, or one entry \"AXIS:N\" "
                         "whose N divides the size of the axis, found ")
         << axes;
}

/// If `slice` has a `piece`, different ranks access different pieces of the buffer, and the
/// function returns the number of pieces. Otherwise returns 1. Emits an error (S3) if the axes of
/// the piece are not axes of the mesh.
static FailureOr<int64_t> countPieces(Operation *op, SliceAttr slice,
                                      SymbolTableCollection &tables) {
  if (!slice.getPiece())
    return 1;
  auto program = op->getParentOfType<ProgramOp>();
  auto mesh = program.getMeshAttr()
                  ? tables.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr())
                  : MeshOp();
  if (!program.getMeshAttr()) {
    op->emitOpError("the slice has pieces over ")
        << slice.getAxes() << ", but the program names no mesh";
    return failure();
  }
  if (slice.getPiece() < 0) {
    op->emitOpError("expected a piece of at least 0 bytes, found ") << slice.getPiece();
    return failure();
  }
  if (!areAxes(mesh, slice.getAxes()))
    return emitWrongAxes(op, slice.getAxes());
  int64_t pieces = 1;
  for (StringRef axis : slice.getAxes().getAsValueRange<StringAttr>())
    pieces *= mesh.getAxisSize(axis);
  return pieces;
}

/// Emits the error (S1) that a slice exceeds its buffer on one of `pieces` ranks in one of `turns`
/// + 1 iterations.
static InFlightDiagnostic emitOutside(Operation *op, SliceAttr slice, int64_t pieces, int64_t turns,
                                      BufferOp buffer) {
  InFlightDiagnostic diag = op->emitOpError();
  if (slice.getOffset() < 0 || slice.getBytes() < 0 || slice.getStride() < 0) {
    diag << "expected a slice with an offset, a size and a step of at least 0, found offset "
         << slice.getOffset() << ", size " << slice.getBytes() << " and step " << slice.getStride();
  } else {
    // The sum contains two products of 63-bit numbers, so it may not fit in 64 bits.
    auto wide = [](int64_t value) { return llvm::APInt(192, value); };
    llvm::APInt end = wide(slice.getOffset()) + wide(slice.getBytes()) +
                      wide(slice.getPiece()) * wide(pieces - 1) +
                      wide(slice.getStride()) * wide(turns);
    diag << "the slice of " << slice.getBytes() << " bytes at offset " << slice.getOffset()
         << " ends at " << llvm::toString(end, 10, /*Signed=*/false);
    if (pieces > 1)
      diag << " for the last of " << pieces << " ranks (piece " << slice.getPiece() << ")";
    if (turns > 0)
      diag << " in the last of " << turns + 1 << " iterations (step " << slice.getStride() << ")";
    diag << ", after the end of its buffer of " << buffer.getBytes() << " bytes";
  }
  diag.attachNote(buffer.getLoc()) << "the buffer is declared here";
  return diag;
}

/// Verifies (S1) to (S3) for each of `slices`.
static LogicalResult checkSlices(Operation *op, ArrayRef<SliceAttr> slices,
                                 SymbolTableCollection &tables) {
  auto program = op->getParentOfType<ProgramOp>();
  auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
  if (!layout)
    return success(); // the verifier of the program reports error (C1)
  auto loop = op->getParentOfType<LoopOp>();
  for (SliceAttr slice : slices) {
    auto buffer = tables.lookupSymbolIn<BufferOp>(layout, slice.getBuffer());
    if (!buffer) { // (S1)
      InFlightDiagnostic diag = op->emitOpError("expected ")
                                << slice.getBuffer() << " to be a buffer of "
                                << program.getLayoutAttr() << ", found "
                                << describeSymbol(slice.getBuffer(), nullptr) << " in it";
      diag.attachNote(layout.getLoc()) << "the layout is declared here";
      return diag;
    }
    if (slice.getStride() && !loop) // (S2)
      return op->emitOpError("a slice outside a loop cannot have a step, found step ")
             << slice.getStride();
    FailureOr<int64_t> pieces = countPieces(op, slice, tables); // (S3)
    if (failed(pieces))
      return failure();
    int64_t turns = loop ? std::max<int64_t>(loop.getCount(), 1) - 1 : 0;
    int64_t bytes = buffer.getBytes();
    // Verify, without overflow, that offset + bytes + piece * (pieces - 1) + stride * turns is at
    // most the size of the buffer.
    int64_t room = bytes;
    auto take = [&](int64_t size, int64_t times) {
      bool fits = size >= 0 && (times == 0 || size <= room / times);
      room -= fits ? size * times : 0;
      return fits;
    };
    bool inside = take(slice.getOffset(), 1) && take(slice.getBytes(), 1) &&
                  take(slice.getPiece(), *pieces - 1) && take(slice.getStride(), turns);
    if (!inside) // (S1)
      return emitOutside(op, slice, *pieces, turns, buffer);
  }
  return success();
}

/// Returns whether the range of `a` on some rank may overlap the range of `b` on some rank.
static bool overlap(Operation *op, SliceAttr a, SliceAttr b, SymbolTableCollection &tables) {
  auto getEnd = [&](SliceAttr slice) {
    FailureOr<int64_t> pieces = countPieces(op, slice, tables);
    return slice.getOffset() + slice.getBytes() +
           (succeeded(pieces) ? slice.getPiece() * (*pieces - 1) : 0);
  };
  return a.getBuffer() == b.getBuffer() && a.getOffset() < getEnd(b) && b.getOffset() < getEnd(a);
}

/// Emits the error that the ranges of two slices of the same buffer overlap.
static LogicalResult emitOverlap(Operation *op, SliceAttr source, SliceAttr target) {
  auto describe = [](SliceAttr slice) {
    std::string text =
        (Twine(slice.getBytes()) + " bytes at offset " + Twine(slice.getOffset())).str();
    if (slice.getPiece())
      text += ", repeated every " + std::to_string(slice.getPiece()) + " bytes for other ranks";
    return text;
  };
  return op->emitOpError("expected source and target not to overlap, found a source of ")
         << describe(source) << ", and a target of " << describe(target) << ", in "
         << source.getBuffer();
}

/// Returns whether `piece` is the part of `whole` to which an all-gather over `axes` writes the
/// data of this rank.
static bool isOwnPiece(SliceAttr piece, SliceAttr whole, ArrayAttr axes) {
  return piece.getBuffer() == whole.getBuffer() && piece.getOffset() == whole.getOffset() &&
         !whole.getPiece() && piece.getStride() == whole.getStride() &&
         piece.getPiece() == piece.getBytes() && piece.getAxes() == axes;
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<func::FuncOp> kernel = lookUpKernel(*this, getKernelAttr(), tables); // (C1)
  if (failed(kernel))
    return failure();
  if (getBindings().size() != kernel->getNumArguments()) // (C2)
    return emitOpError("expected ")
           << describeCount(kernel->getNumArguments(), "binding", "bindings")
           << ", one per argument of " << getKernelAttr() << ", found " << getBindings().size();
  auto slices = llvm::to_vector(getBindings().getAsRange<SliceAttr>());
  for (auto [index, slice, type] : llvm::enumerate(slices, kernel->getArgumentTypes()))
    if (auto shaped = dyn_cast<ShapedType>(type);
        shaped && slice.getBytes() != getStorageBytes(shaped)) // (C2)
      return emitOpError("binding ") << index << " expected " << getStorageBytes(shaped)
                                     << " bytes for " << type << ", found " << slice.getBytes();
  for (auto [index, slice] : llvm::enumerate(slices))
    if (slice.getOffset() % arenaAlignment || slice.getStride() % arenaAlignment ||
        slice.getPiece() % arenaAlignment) // (C3)
      return emitOpError("binding ")
             << index << " expected an offset, a step and a piece that are multiples of "
             << arenaAlignment << ", found offset " << slice.getOffset() << ", step "
             << slice.getStride() << " and piece " << slice.getPiece();
  return checkSlices(*this, slices, tables);
}

/// Returns the number of ranks in a group of the collective. Emits an error (C1) if the mesh or an
/// axis is missing.
static FailureOr<int64_t> countRanks(CollectiveOp op, SymbolTableCollection &tables) {
  auto program = op->getParentOfType<ProgramOp>();
  auto mesh = program.getMeshAttr()
                  ? tables.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr())
                  : MeshOp();
  int64_t ranks = 1;
  if (!op.getAxes().empty() && !program.getMeshAttr()) // (C1)
    return op.emitOpError("has the axes ") << op.getAxes() << ", but the program names no mesh";
  if (!op.getAxes().empty() && !areAxes(mesh, op.getAxes())) // (C1)
    return emitWrongAxes(op, op.getAxes());
  for (StringRef axis : op.getAxes().getAsValueRange<StringAttr>())
    ranks *= mesh.getAxisSize(axis);
  return ranks;
}

/// Verifies the sizes in bytes of source and target (C2).
static LogicalResult checkCount(CollectiveOp op, int64_t ranks) {
  int64_t small =
      op.getCount() * llvm::divideCeil(getStorageType(op.getDtype()).getIntOrFloatBitWidth(), 8);
  bool grows = op.getKind() == CollectiveKind::all_gather,
       shrinks = op.getKind() == CollectiveKind::reduce_scatter;
  int64_t source = shrinks ? small * ranks : small, target = grows ? small * ranks : small;
  if (op.getSource().getBytes() == source && op.getTarget().getBytes() == target)
    return success();
  return op.emitOpError("expected a source of ")
         << source << " bytes and a target of " << target << " bytes for " << op.getCount() << " x "
         << op.getDtype() << " on " << ranks << " ranks, found " << op.getSource().getBytes()
         << " and " << op.getTarget().getBytes() << " bytes";
}

int64_t fsdp::getChannel(Operation *command) {
  if (auto collective = dyn_cast<CollectiveOp>(command))
    return collective.getChannel();
  auto channel =
      isa<CopyOp>(command) ? command->getAttrOfType<IntegerAttr>(copyChannelAttr) : IntegerAttr();
  return channel ? channel.getInt() : 0;
}

std::optional<int64_t> fsdp::getInFlightId(Operation *command) {
  if (getChannel(command) == 0)
    return std::nullopt;
  if (auto collective = dyn_cast<CollectiveOp>(command))
    return collective.getId();
  auto id = command->getAttrOfType<IntegerAttr>(copyIdAttr);
  return id ? std::optional(id.getInt()) : std::nullopt;
}

void fsdp::setInFlight(CopyOp copy, int64_t id, int64_t channel) {
  Builder builder(copy.getContext());
  copy->setAttr(copyIdAttr, builder.getI64IntegerAttr(id));
  copy->setAttr(copyChannelAttr, builder.getI64IntegerAttr(channel));
}

/// Verifies that a command on a channel other than 0 has an id, and that a wait with this id
/// follows in the block.
static LogicalResult checkWaited(Operation *op) {
  int64_t channel = getChannel(op);
  std::optional<int64_t> id = getInFlightId(op);
  if (channel < 0 || (channel > 0 && !id))
    return op->emitOpError("expected channel 0 (synchronous), or a positive channel together with "
                           "an id; found channel ")
           << channel << (id ? "" : " without an id");
  for (Operation *next = op->getNextNode(); id && next; next = next->getNextNode())
    if (auto wait = dyn_cast<WaitOp>(next); wait && static_cast<int64_t>(wait.getId()) == *id)
      return success();
  if (!id)
    return success();
  return op->emitOpError("is asynchronous (channel ")
         << channel << ", id " << *id << "): expected 'fsdp.wait " << *id
         << "' later in the same block, found none";
}

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = countRanks(*this, tables); // (C1)
  if (failed(ranks) || failed(checkSlices(*this, {getSource(), getTarget()}, tables)))
    return failure();
  if (!getDtype().isIntOrIndexOrFloat())
    return emitOpError("expected an integer or floating-point type, found ") << getDtype();
  if (failed(checkCount(*this, *ranks))) // (C2)
    return failure();
  bool inPlace = (getKind() == CollectiveKind::all_gather &&
                  isOwnPiece(getSource(), getTarget(), getAxes())) ||
                 (getKind() == CollectiveKind::all_reduce && getSource() == getTarget());
  if (!inPlace && overlap(*this, getSource(), getTarget(), tables)) // (C3)
    return emitOverlap(*this, getSource(), getTarget());
  if (failed(checkWaited(*this))) // (C5)
    return failure();
  bool reduces =
      getKind() == CollectiveKind::reduce_scatter || getKind() == CollectiveKind::all_reduce;
  StringRef kind = stringifyCollectiveKind(getKind());
  if (reduces && !getReduction()) // (C6)
    return emitOpError() << kind << " expected a reduction, such as 'reduce sum', found none";
  if (!reduces && getReduction()) // (C6)
    return emitOpError() << kind << " expected no reduction, found 'reduce "
                         << stringifyReductionKind(*getReduction()) << "'";
  return success();
}

LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &) {
  for (Operation *before = (*this)->getPrevNode(); before; before = before->getPrevNode())
    if (getInFlightId(before) == static_cast<int64_t>(getId()))
      return success();
  return emitOpError("expected an asynchronous collective or copy with id ")
         << static_cast<int64_t>(getId()) << " earlier in the same block, found none"; // (C1)
}

LogicalResult CopyOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (getSource().getBytes() != getTarget().getBytes()) // (C1)
    return emitOpError("expected source and target of equal size, found ")
           << getSource().getBytes() << " and " << getTarget().getBytes() << " bytes";
  if (overlap(*this, getSource(), getTarget(), tables)) // (C2)
    return emitOverlap(*this, getSource(), getTarget());
  if (failed(checkWaited(*this))) // (C3)
    return failure();
  return checkSlices(*this, {getSource(), getTarget()}, tables);
}

LogicalResult FillOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkSlices(*this, getTarget(), tables);
}

LogicalResult InitialiseOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(*this, getUnitAttr());
  if (!unit) // (C1)
    return emitWrongSymbol(*this, getUnitAttr(), "an 'fsdp.unit'", tables);
  if (getParam() >= unit.getNumParams()) // (C1)
    return emitOpError("expected the index of a parameter, less than ")
           << unit.getNumParams() << " for " << getUnitAttr() << ", found "
           << static_cast<int64_t>(getParam());
  auto program = (*this)->getParentOfType<ProgramOp>();
  auto layout = tables.lookupNearestSymbolFrom<LayoutOp>(program, program.getLayoutAttr());
  if (!layout)
    return success(); // the verifier of the program reports error (C1)
  for (auto state : layout.getOps<StateSlotOp>())
    if (state.getUnitAttr() == getUnitAttr() && state.getRole() == getRole())
      return success();
  return emitOpError("expected a state slot of ")
         << getUnitAttr() << " with role " << stringifyStateRole(getRole()) // (C2)
         << " in " << program.getLayoutAttr() << ", found none";
}
