//===- ChunkRows.cpp - Compute wide results by chunks of rows ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Avoids storing a wide result of a contraction, such as the logits. The contraction and the
// readers of its result are computed for one chunk of rows at a time.
//
//   %z  = contract %x, %w        [N,V]         for each chunk c of the rows, written out:
//   %l  = lse %z                 [N]             %zc = contract %x[c], %w
//   %dz = %z, %l, %t             [N,V]    =>     %lc = lse %zc
//   %dx = contract %dz, %w       [N,H]           %dzc = %zc, %lc, %t[c]
//   %dw = contract %x, %dz       [V,H]           %dxc = contract %dzc, %w
//                                                %dw = contract %x[c], %dzc into %dw   (adds)
//                                              %l, %dx = concatenations of %lc, %dxc   (at the end)
//
// 1. A seed is a contraction whose result exceeds the limit in bytes. The rows of the seed are a
//    parallel loop that indexes the result and the left operand, but not the right operand. If
//    there are several such loops, try the longest loop first.
// 2. The group consists of the seed, the readers of every wide result, and the ops that depend on
//    one member and on which another member depends.
//    - Each member must be a linalg op with a loop over the rows, or an all-reduce.
//    - If an op outside the group reads a wide result, or a member needs a sum over all rows, do
//      not chunk, because the whole result must then be stored.
//    - Ops that compute one number per row join the group, so that they can share kernels with
//      members.
//    - If only maps (for example, conversions to a narrower type) read the seed's result, do not
//      chunk, because the result is then not stored.
// 3. Write the ops of the group once for each chunk. After the last chunk, concatenate the results
//    that have rows. The initial value of a sum over rows is the sum of the previous chunks.
// 4. Sort the ops from the first member on, because readers of the results may precede the last
//    chunk.
//
// The bits of values that have rows do not change. Sums over rows add in the same order as before,
// but a contraction over rows rounds once per chunk. Takes O(seeds · group · chunks) time. Columns
// are not divided into chunks, because a softmax reads every column twice.
//
//===----------------------------------------------------------------------===//

#include "BlockOrder.h"
#include "RowGroup.h"
#include "fsdp/Fuse/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CHUNKROWSPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Step 3
//===----------------------------------------------------------------------===//

/// Builds the slice of rows [begin, begin + rows) of the dimension `dim`.
static Value slice(OpBuilder &b, Location loc, Value v, int64_t dim, int64_t begin, int64_t rows) {
  auto type = cast<RankedTensorType>(v.getType());
  if (Operation *fill = v.getDefiningOp();
      // Do not slice an empty tensor or a fill, but create it in the shape of the chunk.
      fill && isa<tensor::EmptyOp, linalg::FillOp>(fill)) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = rows;
    Value empty = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
    auto filled = dyn_cast<linalg::FillOp>(fill);
    return filled ? linalg::FillOp::create(b, loc, filled.getInputs(), empty).getResult(0) : empty;
  }
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(b.getContext(), type.getShape());
  offsets[dim] = b.getIndexAttr(begin);
  sizes[dim] = b.getIndexAttr(rows);
  return tensor::ExtractSliceOp::create(b, loc, v, offsets, sizes, strides);
}

/// Adds `begin` to the row index in the body. Does not change the index where it selects an element
/// of a value of the chunk, because the rows of such a value begin at 0.
static void shiftRowIndices(linalg::LinalgOp op, unsigned loop, int64_t begin,
                            llvm::function_ref<bool(OpOperand &)> isLocal) {
  if (begin == 0)
    return;
  for (linalg::IndexOp index : llvm::to_vector(op->getRegion(0).getOps<linalg::IndexOp>())) {
    if (index.getDim() != loop || llvm::all_of(index->getUses(), isLocal))
      continue;
    OpBuilder b(op.getContext());
    b.setInsertionPointAfter(index);
    Value by = arith::ConstantIndexOp::create(b, index.getLoc(), begin);
    Value shifted = arith::AddIOp::create(b, index.getLoc(), index, by);
    index.getResult().replaceUsesWithIf(shifted, [&](OpOperand &use) {
      return use.getOwner() != shifted.getDefiningOp() && !isLocal(use);
    });
  }
}

/// Writes a member for one chunk. `mapping` maps values with rows to their values in this chunk,
/// and maps sums over rows to the sums of the previous chunks.
void RowGroup::writeMember(OpBuilder &b, Operation *member, int64_t begin, int64_t rows,
                           IRMapping &mapping) {
  if (auto sum = dyn_cast<AllReduceOp>(member)) {
    Value part = mapping.lookup(sum.getInput());
    mapping.map(sum.getResult(),
                AllReduceOp::create(b, sum.getLoc(), part.getType(), part, sum.getMeshAttr(),
                                    sum.getAxesAttr(), sum.getReductionAttr())
                    .getResult());
    return;
  }
  auto op = cast<linalg::LinalgOp>(member);
  unsigned loop = rowLoops.lookup(op);
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (OpOperand &operand : op->getOpOperands()) {
    Value v = operand.get();
    bool isInit = operand.getOperandNumber() >= op.getNumDpsInputs();
    int dim = isa<RankedTensorType>(v.getType())
                  ? *findDimension(op.getMatchingIndexingMap(&operand), loop)
                  : -1;
    if (Value known = mapping.lookupOrNull(v); known && isOverRows(v))
      v = known; // the value in this chunk
    else if (dim >= 0)
      v = slice(b, op.getLoc(), v, dim, begin, rows);
    else if (isInit && begin > 0) // the sum of the previous chunks
      v = mapping.lookup(op.getTiedOpResult(&operand));
    operands.push_back(v);
    if (isInit)
      types.push_back(v.getType());
  }
  IRMapping body;
  llvm::SmallDenseSet<Value> local;
  for (Value capture : getCaptures(op))
    if (isOverRows(capture)) {
      body.map(capture, mapping.lookup(capture));
      local.insert(mapping.lookup(capture));
    }
  auto copy = cast<linalg::LinalgOp>(clone(b, op, types, operands));
  copy->getRegion(0).walk(
      [&](Operation *inner) { // clone() maps the operands of the op, but not its captures
        for (OpOperand &operand : inner->getOpOperands())
          if (Value to = body.lookupOrNull(operand.get()))
            operand.set(to);
      });
  shiftRowIndices(copy, loop, begin, [&](OpOperand &use) {
    auto extract = dyn_cast<tensor::ExtractOp>(use.getOwner());
    return extract && local.contains(extract.getTensor());
  });
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    mapping.map(from, to);
}

llvm::iterator_range<Block::iterator> RowGroup::write(int64_t chunkRows) {
  SmallVector<Operation *> ordered = getOrdered();
  Operation *previous = ordered.front()->getPrevNode();
  Block::iterator end = std::next(ordered.back()->getIterator());
  OpBuilder b(ordered.back()->getNextNode());
  IRMapping mapping;
  llvm::MapVector<Value, SmallVector<Value>> parts;
  for (int64_t begin = 0, all = countRows(); begin < all; begin += chunkRows) {
    for (Operation *op : ordered)
      for (Value result : op->getResults())
        if (isOverRows(result))
          mapping.erase(result);
    for (Operation *op : ordered)
      writeMember(b, op, begin, std::min(chunkRows, all - begin), mapping);
    for (Operation *op : ordered)
      for (Value result : op->getResults())
        if (isOverRows(result) && llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !members.contains(block->findAncestorOpInBlock(*user));
            }))
          parts[result].push_back(mapping.lookup(result));
  }
  for (auto &[result, chunks] : parts)
    mapping.map(
        result,
        tensor::ConcatOp::create(b, result.getLoc(), rowDims.lookup(result), chunks).getResult());
  for (Operation *op : llvm::reverse(ordered)) {
    for (Value result : op->getResults())
      if (!result.use_empty())
        result.replaceAllUsesWith(mapping.lookup(result));
    op->erase();
  }
  return {previous ? std::next(previous->getIterator()) : block->begin(), end};
}

namespace {
struct ChunkRowsPass : fsdp::impl::ChunkRowsPassBase<ChunkRowsPass> {
  using ChunkRowsPassBase::ChunkRowsPassBase;

  void addSeeds(llvm::iterator_range<Block::iterator> range);
  void chunk(linalg::LinalgOp seed);
  void noteSmallest(linalg::LinalgOp seed, int64_t rows, int64_t rowBytes);
  void runOnOperation() override;

  /// Bytes and rows of the largest chunk that exceeds the limit although it has the smallest
  /// permitted number of rows. Both are 0 if there is no such chunk.
  int64_t mostBytes = 0, mostRows = 0;
  /// Seeds in the order in which they are tried. Those that have been erased are null.
  SmallVector<Operation *> seeds;
  DenseMap<Operation *, size_t> numbers; ///< index of each seed
  std::optional<Location> where;
};
} // namespace

/// Returns the loops that index the result and the first operand, but not the second operand (step
/// 1). The longest loop comes first.
static SmallVector<unsigned> getRowLoops(linalg::LinalgOp seed) {
  SmallVector<AffineMap> maps = seed.getIndexingMapsArray();
  SmallVector<unsigned> loops;
  for (AffineExpr expr : maps.back().getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (maps[0].isFunctionOfDim(dim.getPosition()) && !maps[1].isFunctionOfDim(dim.getPosition()))
        loops.push_back(dim.getPosition());
  SmallVector<int64_t> sizes = seed.getStaticLoopRanges();
  llvm::stable_sort(loops, [&](unsigned a, unsigned b) { return sizes[a] > sizes[b]; });
  return loops;
}

/// Returns the number of rows of a chunk. If `rows` has a divisor between 3/4 of `fitting` and
/// `fitting`, returns such a divisor.
static int64_t chooseChunkRows(int64_t rows, int64_t fitting) {
  for (int64_t size = fitting; size * 4 > fitting * 3; --size)
    if (rows % size == 0)
      return size;
  return llvm::divideCeil(rows, llvm::divideCeil(rows, fitting));
}

/// Records that even the smallest chunk that is allowed, which has `rows` rows, exceeds the limit.
void ChunkRowsPass::noteSmallest(linalg::LinalgOp seed, int64_t rows, int64_t rowBytes) {
  if (rows * rowBytes > mostBytes) {
    mostBytes = rows * rowBytes;
    mostRows = rows;
    where = seed.getLoc();
  }
}

/// Appends the contractions of the range that are seeds and are not in the list.
void ChunkRowsPass::addSeeds(llvm::iterator_range<Block::iterator> range) {
  for (Operation &op : range)
    op.walk([&](linalg::ContractOp seed) {
      if (tensorBytes(seed->getResult(0)) > maxBytes &&
          numbers.try_emplace(seed, seeds.size()).second)
        seeds.push_back(seed);
    });
}

/// Writes the group of a seed in chunks if that is possible.
void ChunkRowsPass::chunk(linalg::LinalgOp seed) {
  for (unsigned loop : getRowLoops(seed)) {
    RowGroup group(seed, loop, maxBytes);
    if (!group.grow())
      continue;
    int64_t rows = group.countRows(), fitting = maxBytes / group.countRowBytes();
    if (fitting < std::min(rows, minRows.getValue()))
      noteSmallest(seed, std::min(rows, minRows.getValue()), group.countRowBytes());
    fitting = std::max<int64_t>(fitting, minRows);
    if (rows <= fitting)
      continue;
    int64_t chunkRows = chooseChunkRows(rows, fitting);
    numChunks += llvm::divideCeil(rows, chunkRows);
    ++numGroups;
    if (remarks)
      seed.emitRemark() << "computed for " << chunkRows << " of " << rows << " rows at a time";
    for (Operation *member : group.getMembers())
      if (auto found = numbers.find(member); found != numbers.end()) {
        seeds[found->second] = nullptr;
        numbers.erase(found);
      }
    llvm::iterator_range<Block::iterator> range = group.write(chunkRows);
    addSeeds(range);
    return restoreOrder(range);
  }
}

void ChunkRowsPass::runOnOperation() {
  if (maxBytes == 0 || getOperation().isExternal())
    return;
  mostBytes = 0; // the pass may have run on another function before
  seeds.clear();
  numbers.clear();
  for (Block &block : getOperation().getBody())
    addSeeds({block.begin(), block.end()});
  for (size_t next = 0; next < seeds.size(); ++next)
    if (seeds[next])
      chunk(cast<linalg::LinalgOp>(seeds[next]));
  if (warnings && mostBytes)
    emitWarning(*where) << "max-chunk-bytes: the smallest chunk has " << mostRows
                        << " rows, which take " << mostBytes
                        << " bytes; expected at least as many, found " << maxBytes.getValue();
}
