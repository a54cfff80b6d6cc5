//===- FoldHeadCopies.cpp - Heads inside tensors of projections --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A projection computes [batch, rows, heads, cols], and attention works on [batch, heads, rows,
// cols]. The kernels of attention can read and write heads inside the tensors of projections:
//
//   %v = fsdp.dispatch (%p) {               %t = fsdp.dispatch (%q, %k, %p) {
//     yield permute %p                        %v = permute %p
//   }                                         %o = attention %q, %k, %v
//   %o = fsdp.dispatch (%q, %k, %v) {  =>     yield permute %o
//     yield attention %q, %k, %v            }
//   }
//   %t = fsdp.dispatch (%o) {
//     yield permute %o
//   }
//
// 1. Views. Move reshapes between an attention and a dispatch that only moves its result or its
//    operand (IR/HeadLayout.h) into this dispatch. Models with a batch of one have such reshapes.
// 2. Results. For each dispatch that only moves results of one attention, let the attention yield
//    the moved tensor. Other dispatches that move a result in the same way read the moved tensor,
//    and other attentions read it with the opposite move. There may be no other readers.
// 3. Operands. For each dispatch that only moves a tensor which only attentions read, copy the
//    moves into the attentions. The source then lives as long as the attentions read it, so the
//    moved tensors must together have at least as many bytes as their source.
//
// Takes O(uses) time per dispatch. Moves of elements inside a row, such as rotary embeddings, are
// not folded.
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/HeadLayout.h"
#include "fsdp/IR/Kernels.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FOLDHEADCOPIESPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static Operation *findAttention(DispatchOp dispatch) {
  Block &body = dispatch.getBody().front();
  auto found = llvm::find_if(body, [](Operation &op) { return isAttention(&op); });
  return found == body.end() ? nullptr : &*found;
}

static Value getYielded(DispatchOp dispatch, unsigned result) {
  return dispatch.getBody().front().getTerminator()->getOperand(result);
}

/// Returns true if the dispatch only moves elements of its operands.
static bool onlyMoves(DispatchOp dispatch) {
  Block &body = dispatch.getBody().front();
  return dispatch.getNumOperands() && llvm::all_of(body.without_terminator(), [](Operation &op) {
           return isMoveOfElements(&op);
         });
}

/// Returns true if the operand is the only operand of a dispatch that moves it to the only result.
static bool movesOne(DispatchOp copy) {
  return copy.getNumOperands() == 1 && copy.getNumResults() == 1 && onlyMoves(copy);
}

/// Returns true if the dispatch reads the operand only as a tensor of heads of an attention.
static bool isReadAsHeads(OpOperand &use) {
  auto dispatch = dyn_cast<DispatchOp>(use.getOwner());
  Operation *attention = dispatch ? findAttention(dispatch) : nullptr;
  return attention && llvm::all_of(dispatch.getBody().getArgument(use.getOperandNumber()).getUses(),
                                   [&](OpOperand &inside) {
                                     return llvm::is_contained(getHeadOperands(attention), &inside);
                                   });
}

/// Returns true if emitOpposite() can reverse the moves from which `result` results.
static bool isReversible(Value result) {
  while (Operation *op = result.getDefiningOp()) {
    if (!isa<linalg::GenericOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      return false;
    result = op->getOperand(0);
  }
  return true;
}

/// Emits the moves from `moved`, which is equal to `result`, back to the source of `result`.
static Value emitOpposite(OpBuilder &b, Value moved, Value result) {
  while (Operation *op = result.getDefiningOp()) {
    Location loc = moved.getLoc();
    result = op->getOperand(0);
    auto type = cast<RankedTensorType>(result.getType());
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      moved =
          tensor::ExpandShapeOp::create(b, loc, type, moved, collapse.getReassociationIndices());
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      moved =
          tensor::CollapseShapeOp::create(b, loc, type, moved, expand.getReassociationIndices());
    } else {
      auto copy = cast<linalg::GenericOp>(op);
      SmallVector<AffineMap> maps = copy.getIndexingMapsArray();
      Value empty = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
      auto back = linalg::GenericOp::create(
          b, loc, type, moved, empty, ArrayRef<AffineMap>{maps[1], maps[0]},
          copy.getIteratorTypesArray(), [](OpBuilder &b, Location loc, ValueRange args) {
            linalg::YieldOp::create(b, loc, args[0]);
          });
      moved = back.getResult(0);
    }
  }
  return moved;
}

/// Lets a dispatch of attention read `source`, from which `emit` computes the operand.
static void readFrom(OpOperand &use, Value source, function_ref<Value(OpBuilder &, Value)> emit) {
  auto dispatch = cast<DispatchOp>(use.getOwner());
  unsigned number = use.getOperandNumber();
  BlockArgument read = dispatch.getBody().getArgument(number);
  SmallVector<OpOperand *> inside =
      llvm::map_to_vector(read.getUses(), [](OpOperand &use) { return &use; });
  use.set(source);
  read.setType(source.getType());
  OpBuilder b = OpBuilder::atBlockBegin(read.getOwner());
  Value moved = emit(b, read);
  for (OpOperand *one : inside)
    one->set(moved);
  // Pass a tensor only once, even if it contains several tensors of heads.
  for (auto [other, operand] : llvm::enumerate(dispatch.getInputs()))
    if (other != number && operand == source) {
      read.replaceAllUsesWith(dispatch.getBody().getArgument(other));
      dispatch.getBody().eraseArgument(number);
      dispatch->eraseOperand(number);
      break;
    }
}

/// Returns true if the op changes only the shape of its operand. Returns false for null.
static bool isReshape(Operation *op) {
  return isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
}

/// Clones `view`, a reshape, with the operand `source`. Returns the result.
static Value cloneOn(OpBuilder &b, Operation *view, Value source) {
  IRMapping mapping;
  mapping.map(view->getOperand(0), source);
  return b.clone(*view, mapping)->getResult(0);
}

/// If `copy` reads the result of an attention through reshapes, moves the reshapes into `copy`.
static void absorbReshapesBefore(DispatchOp copy) {
  SmallVector<Operation *> views;
  Value source = copy.getInputs()[0];
  for (; isReshape(source.getDefiningOp()); source = views.back()->getOperand(0))
    views.push_back(source.getDefiningOp());
  auto producer = source.getDefiningOp<DispatchOp>();
  if (views.empty() || !producer || !findAttention(producer))
    return;
  readFrom(copy->getOpOperand(0), source, [&](OpBuilder &b, Value read) {
    for (Operation *view : llvm::reverse(views))
      read = cloneOn(b, view, read);
    return read;
  });
  for (Operation *view : views)
    if (view->use_empty())
      view->erase();
}

/// If only attentions read the result of `copy`, through one reshape, moves the reshape into
/// `copy`.
static void absorbReshapeAfter(DispatchOp copy) {
  Value result = copy.getResult(0);
  Operation *view = result.hasOneUse() ? *result.user_begin() : nullptr;
  if (!isReshape(view) || view->use_empty() ||
      !llvm::all_of(view->getResult(0).getUses(), isReadAsHeads))
    return;
  Operation *yield = copy.getBody().front().getTerminator();
  OpBuilder b(yield);
  yield->setOperand(0, cloneOn(b, view, yield->getOperand(0)));
  result.setType(view->getResult(0).getType());
  view->replaceAllUsesWith(copy);
  view->erase();
}

/// Creates a dispatch before `copy` that yields the results `kept` of `attention`, then the results
/// of `copy`, which moves the other results.
static DispatchOp buildJoined(DispatchOp attention, DispatchOp copy, ArrayRef<unsigned> kept) {
  OpBuilder b(attention);
  SmallVector<Type> types;
  for (unsigned result : kept)
    types.push_back(attention.getResult(result).getType());
  llvm::append_range(types, copy.getResultTypes());
  SmallVector<int64_t> inplace(types.size(), -1);
  auto joined = DispatchOp::create(b, attention.getLoc(), types, attention.getInputs(),
                                   b.getDenseI64ArrayAttr(inplace));
  joined->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
  Block *block = b.createBlock(&joined.getBody());
  IRMapping mapping;
  for (BlockArgument arg : attention.getBody().getArguments())
    mapping.map(arg, block->addArgument(arg.getType(), arg.getLoc()));
  for (Operation &op : attention.getBody().front().without_terminator())
    b.clone(op, mapping);
  SmallVector<Value> yielded;
  for (unsigned result : kept)
    yielded.push_back(mapping.lookup(getYielded(attention, result)));
  for (auto [arg, input] : llvm::zip_equal(copy.getBody().getArguments(), copy.getInputs()))
    mapping.map(arg,
                mapping.lookup(getYielded(attention, cast<OpResult>(input).getResultNumber())));
  for (Operation &op : copy.getBody().front().without_terminator())
    b.clone(op, mapping);
  for (unsigned result = 0; result < copy.getNumResults(); ++result)
    yielded.push_back(mapping.lookup(getYielded(copy, result)));
  YieldOp::create(b, joined.getLoc(), yielded);
  return joined;
}

namespace {
struct FoldHeadCopiesPass : fsdp::impl::FoldHeadCopiesPassBase<FoldHeadCopiesPass> {
  using FoldHeadCopiesPassBase::FoldHeadCopiesPassBase;

  bool isSupported(const PlacedHeads &placed) const {
    auto type = dyn_cast<RankedTensorType>(placed.heads.getType());
    return type && type.getRank() == 4 && placed.layout.isAligned(type, bytes);
  }

  /// Returns the place of the operand of `copy` in its result if movesOne(copy).
  std::optional<HeadLayout> layoutOf(DispatchOp copy) const {
    std::optional<SmallVector<PlacedHeads>> pieces;
    if (movesOne(copy))
      pieces = findPieces(getYielded(copy, 0));
    return pieces && pieces->size() == 1 && isSupported(pieces->front())
               ? std::optional(pieces->front().layout)
               : std::nullopt;
  }

  /// The readers of a result of attention, without the dispatch that moves it.
  struct Readers {
    SmallVector<DispatchOp> copies; ///< dispatches that move the result in the same way
    SmallVector<OpOperand *> attentions;
  };

  /// Adds the readers of `result` to `readers`. Returns false if it has other readers.
  bool collectReaders(Value result, DispatchOp copy, Readers &readers) {
    std::optional<HeadLayout> layout = layoutOf(copy);
    bool reversible = layout && isReversible(getYielded(copy, 0));
    for (OpOperand &use : result.getUses()) {
      auto user = dyn_cast<DispatchOp>(use.getOwner());
      if (user == copy)
        continue;
      if (user && reversible && isReadAsHeads(use))
        readers.attentions.push_back(&use);
      else if (user && layout && layoutOf(user) == layout &&
               user.getResultTypes() == copy.getResultTypes())
        readers.copies.push_back(user);
      else
        return false;
    }
    return true;
  }

  /// Returns the attention whose results are the operands of `copy`, if it can yield the results of
  /// `copy`, and the numbers of those of its results that others need. Otherwise returns null.
  DispatchOp findProducer(DispatchOp copy, SmallVectorImpl<unsigned> &kept, Readers &readers) {
    auto producer = copy.getInputs()[0].getDefiningOp<DispatchOp>();
    Operation *attention = producer ? findAttention(producer) : nullptr;
    if (!attention || producer->getBlock() != copy->getBlock())
      return {};
    llvm::SmallDenseSet<unsigned> moved;
    for (Value input : copy.getInputs()) {
      if (input.getDefiningOp() != producer ||
          getYielded(producer, cast<OpResult>(input).getResultNumber()).getDefiningOp() !=
              attention ||
          !collectReaders(input, copy, readers))
        return {};
      moved.insert(cast<OpResult>(input).getResultNumber());
    }
    size_t pieces = 0;
    for (unsigned result = 0; result < copy.getNumResults(); ++result) {
      auto found = findPieces(getYielded(copy, result));
      if (!found || !llvm::all_of(*found, [&](const PlacedHeads &piece) {
            return isa<BlockArgument>(piece.heads) && isSupported(piece);
          }))
        return {};
      pieces += found->size();
    }
    if (pieces != copy.getNumOperands()) // each is moved once
      return {};
    for (unsigned result = 0; result < producer.getNumResults(); ++result)
      if (!moved.contains(result))
        kept.push_back(result);
    return producer;
  }

  /// Lets the attention that computes the operands of `copy` yield the results of `copy` (step 2).
  void foldResults(DispatchOp copy, llvm::SmallPtrSetImpl<Operation *> &erased) {
    SmallVector<unsigned> kept;
    Readers readers;
    DispatchOp producer = findProducer(copy, kept, readers);
    if (!producer)
      return;
    DispatchOp joined = buildJoined(producer, copy, kept);
    if (!findHeads(findAttention(joined), bytes)) {
      joined.erase();
      return;
    }
    for (auto [i, result] : llvm::enumerate(kept))
      producer.getResult(result).replaceAllUsesWith(joined.getResult(i));
    ValueRange moved = joined.getResults().drop_front(kept.size());
    for (OpOperand *use : readers.attentions)
      readFrom(*use, moved[0], [&](OpBuilder &b, Value read) {
        return emitOpposite(b, read, getYielded(copy, 0));
      });
    readers.copies.push_back(copy);
    for (DispatchOp one : readers.copies) {
      one.replaceAllUsesWith(moved);
      erased.insert(one);
      one.erase();
      ++numFolded;
    }
    producer.erase();
  }

  /// Returns true if attentions can read the source of `copy` instead of its result.
  bool isOperandCopy(DispatchOp copy) const {
    if (!movesOne(copy) || !llvm::all_of(copy.getResult(0).getUses(), isReadAsHeads))
      return false;
    std::optional<PlacedHeads> source = findSource(getYielded(copy, 0));
    return source && isa<BlockArgument>(source->in) && isSupported(*source);
  }

  /// Lets attentions read the sources of copies (step 3).
  void foldOperands(ArrayRef<DispatchOp> copies) {
    llvm::MapVector<Value, SmallVector<DispatchOp>> ofSources;
    for (DispatchOp copy : copies)
      if (isOperandCopy(copy)) {
        Value source = copy.getInputs()[0];
        while (Operation *view = source.getDefiningOp()) {
          if (!isContiguousView(view))
            break;
          source = view->getOperand(0);
        }
        ofSources[source].push_back(copy);
      }
    for (auto &[source, all] : ofSources) {
      llvm::SmallDenseMap<int64_t, int64_t> bytesAt; // bytes of the copies, by their offsets
      for (DispatchOp copy : all)
        bytesAt[findSource(getYielded(copy, 0))->layout.offset] =
            getStorageBytes(cast<ShapedType>(copy.getResult(0).getType()));
      int64_t moved = 0;
      for (auto [offset, bytes] : bytesAt)
        moved += bytes;
      if (moved < getStorageBytes(cast<ShapedType>(source.getType())))
        continue;
      for (DispatchOp copy : all)
        foldIntoReaders(copy);
    }
  }

  void foldIntoReaders(DispatchOp copy) {
    while (!copy.use_empty())
      readFrom(*copy->use_begin(), copy.getInputs()[0], [&](OpBuilder &b, Value read) {
        IRMapping mapping;
        mapping.map(copy.getBody().getArgument(0), read);
        for (Operation &op : copy.getBody().front().without_terminator())
          b.clone(op, mapping);
        return mapping.lookup(getYielded(copy, 0));
      });
    copy.erase();
    ++numFolded;
  }

  SmallVector<DispatchOp> collectCopies() {
    SmallVector<DispatchOp> copies;
    getOperation().walk([&](DispatchOp dispatch) {
      if (onlyMoves(dispatch))
        copies.push_back(dispatch);
    });
    return copies;
  }

  void runOnOperation() override {
    llvm::SmallPtrSet<Operation *, 16> erased;
    SmallVector<DispatchOp> copies = collectCopies();
    for (DispatchOp copy : llvm::make_filter_range(copies, movesOne)) {
      absorbReshapesBefore(copy);
      absorbReshapeAfter(copy);
    }
    for (DispatchOp copy : copies)
      if (!erased.contains(copy))
        foldResults(copy, erased);
    foldOperands(collectCopies());
  }
};
} // namespace
