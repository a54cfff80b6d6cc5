//===- LoopPhases.cpp - Distributes plain loops over workers ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The general lowering (LoopKernels.cpp) produces a sequence of structured ops on buffers for
// one worker. This file turns each large op into its own phase:
//
//   func @k { fill %b; generic %x -> %b; .. }
//     =>
//   func @k     {extent = 64} { fill: rows [begin, end) of %b }
//   func @k.1   {extent = 64} { generic: rows [begin, end) }
//
//  1. Ops without effects (views, constants) and loads from read-only memory are cloned into every
//     phase that uses them. If any other op has a result, several phases could need this result. In
//     this case, the kernel becomes a single phase.
//  2. In a large op, a parallel loop whose index occurs in the index of every output becomes the
//     outermost loop. This loop iterates over the range that the phase is called with. The
//     computation of an element does not change, so the bits of the results do not depend on the
//     number of workers.
//  3. Consecutive small ops form one phase, which one worker runs. Separate phases would need
//     barriers between them.
//
// Takes time linear in the number of ops and quadratic in the number of phases.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fsdp;

/// An op is split only if its number of iterations is at least this number. With fewer iterations,
/// a barrier would cost more time than the split saves.
static constexpr int64_t minIterations = 4096;

namespace {
/// A range of consecutive ops with effects that becomes a phase. If `extent` is greater than 1, the
/// range is a single op, which is split along the loop `loop` so that several workers can run it.
struct Piece {
  size_t first, last;
  int64_t extent = 1;
  unsigned loop = 0;
};
} // namespace

/// Returns true if `op` loads from a constant, or from an argument that the kernel does not write.
static bool readsConstant(Operation &op, func::FuncOp function, ArrayRef<bool> writes) {
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return false;
  Value source = load.getMemRef();
  while (auto view = source.getDefiningOp<ViewLikeOpInterface>())
    source = view.getViewSource();
  if (source.getDefiningOp<memref::GetGlobalOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(source);
  return argument && argument.getOwner() == &function.front() &&
         argument.getArgNumber() < writes.size() && !writes[argument.getArgNumber()];
}

/// Returns the loop along which an op is split. Returns nothing if the op is small, or if none of
/// its loops is suitable.
static std::optional<unsigned> chooseLoop(linalg::LinalgOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t iterations = 1;
  for (int64_t range : ranges) {
    if (ShapedType::isDynamic(range))
      return std::nullopt;
    iterations *= range;
  }
  if (iterations < minIterations || op->getNumResults())
    return std::nullopt;
  std::optional<unsigned> best;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    AffineExpr dim = getAffineDimExpr(loop, op.getContext());
    bool everywhere = llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
      return llvm::is_contained(op.getMatchingIndexingMap(&init).getResults(), dim);
    });
    // The outermost suitable loop with at least 16 iterations is preferred to its inner loops,
    // because 16 iterations are enough for any number of workers on one host.
    constexpr int64_t plenty = 16;
    if (kind == utils::IteratorType::parallel && everywhere && ranges[loop] > 1 &&
        (!best || (ranges[*best] < plenty && ranges[loop] > ranges[*best])))
      best = loop;
  }
  return best;
}

static std::optional<SmallVector<Piece>> cutIntoPieces(func::FuncOp function,
                                                       ArrayRef<bool> writes) {
  SmallVector<Piece> pieces;
  for (auto [position, op] : llvm::enumerate(function.front().without_terminator())) {
    if (isMemoryEffectFree(&op) || readsConstant(op, function, writes))
      continue;
    if (op.getNumResults())
      return std::nullopt;
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    std::optional<unsigned> loop = structured ? chooseLoop(structured) : std::nullopt;
    if (loop)
      pieces.push_back({position, position, structured.getStaticLoopRanges()[*loop], *loop});
    else if (!pieces.empty() && pieces.back().extent == 1)
      pieces.back().last = position;
    else
      pieces.push_back({position, position});
  }
  return pieces;
}

/// Lowers `op` to loops. Loop number `loop` becomes the outermost loop, and its bounds become
/// `begin` and `end`.
static LogicalResult splitLoop(linalg::LinalgOp op, unsigned loop, Value begin, Value end) {
  IRRewriter rewriter(op.getContext());
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> general = linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return failure();
    generic = *general;
  }
  SmallVector<unsigned> order{loop};
  for (unsigned i = 0; i < generic.getNumLoops(); ++i)
    if (i != loop)
      order.push_back(i);
  rewriter.setInsertionPoint(generic);
  FailureOr<linalg::GenericOp> turned = linalg::interchangeGenericOp(rewriter, generic, order);
  if (failed(turned))
    return failure();
  rewriter.setInsertionPoint(*turned);
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, *turned);
  if (failed(loops) || loops->empty())
    return failure();
  auto outer = dyn_cast<scf::ForOp>(loops->front());
  if (!outer)
    return failure();
  outer.setLowerBound(begin);
  outer.setUpperBound(end);
  rewriter.eraseOp(*turned);
  return success();
}

/// Erases from `phase`, a copy of the function, all ops that are not in `piece`. Splits the op of
/// the piece if `extent` is greater than 1.
static LogicalResult keepPiece(func::FuncOp phase, const Piece &piece, ArrayRef<bool> writes) {
  unsigned arguments = phase.getNumArguments();
  Value begin = phase.getArgument(arguments - 3), end = phase.getArgument(arguments - 2);
  SmallVector<Operation *> others;
  Operation *split = nullptr;
  for (auto [position, op] : llvm::enumerate(phase.front().without_terminator())) {
    if (isMemoryEffectFree(&op) || readsConstant(op, phase, writes))
      continue;
    if (position < piece.first || position > piece.last)
      others.push_back(&op);
    else if (piece.extent > 1)
      split = &op;
  }
  for (Operation *op : others)
    op->erase();
  if (split && failed(splitLoop(cast<linalg::LinalgOp>(split), piece.loop, begin, end)))
    return failure();
  Builder b(phase.getContext());
  phase->setAttr(extentAttr, b.getI64IntegerAttr(piece.extent));
  phase->setAttr(tileAttr, b.getI64IntegerAttr(1));
  return success();
}

SmallVector<func::FuncOp> fsdp::splitLoopPhases(func::FuncOp function, KernelInfo &info) {
  std::optional<SmallVector<Piece>> pieces = cutIntoPieces(function, info.writes);
  bool splits =
      pieces && llvm::any_of(*pieces, [](const Piece &piece) { return piece.extent > 1; });
  SmallVector<func::FuncOp> phases;
  for (size_t i = 0; splits && i < pieces->size(); ++i) {
    func::FuncOp phase = function.clone();
    function->getBlock()->getOperations().insert(Block::iterator(function), phase);
    phases.push_back(phase);
    splits = succeeded(keepPiece(phase, (*pieces)[i], info.writes));
  }
  if (!splits) {
    for (func::FuncOp phase : phases)
      phase.erase();
    phases = {function};
    Builder b(function.getContext());
    for (StringRef name : {StringRef(extentAttr), StringRef(tileAttr)})
      function->setAttr(name, b.getI64IntegerAttr(1));
  } else {
    function.erase();
  }
  for (auto [number, phase] : llvm::enumerate(phases)) {
    phase.setName(number ? info.name + "." + std::to_string(number) : info.name);
    info.phases.push_back(
        {phase.getName().str(), phase->getAttrOfType<IntegerAttr>(extentAttr).getInt(), 1});
    cleanUp(phase);
  }
  return phases;
}
