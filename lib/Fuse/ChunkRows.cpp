//===- ChunkRows.cpp - Wide results a chunk of rows at a time ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Never has a wide result of a contraction, such as the logits, whole in memory:
// all that is computed from it is computed for a chunk of its rows at a time.
//
//   %z  = contract %x, %w        [N,V]         for each chunk c of the rows, written out:
//   %l  = lse %z                 [N]             %zc = contract %x[c], %w
//   %dz = %z, %l, %t             [N,V]    =>     %lc = lse %zc
//   %dx = contract %dz, %w       [N,H]           %dzc = %zc, %lc, %t[c]
//   %dw = contract %x, %dz       [V,H]           %dxc = contract %dzc, %w
//                                                %dw = contract %x[c], %dzc into %dw
//                                              %l, %dx = the %lc, the %dxc, one below the other
//
//  1. A seed is a contraction whose result takes more than the limit; its rows
//     are a parallel loop, the longest one that its left operand has alone.
//  2. The group is what reads the seed, and so on through every result that is
//     wide, and what lies between members. Each must be a linalg op which, where
//     it has the rows, has them as a loop. A wide result that is read by
//     anything else, or a member that waits for a sum over all rows, ends the
//     attempt: that result has to be whole. Ops on one number per row join, so
//     that kernels need not be cut between them and the members. A seed that is
//     only mapped, to a narrower type, say, is never stored anyway.
//  3. Write the chunks out. A result over rows is put together behind the last
//     one; a sum over rows goes on from the one of the chunk before.
//  4. Sort the block: readers of the results may stand in front of the last member.
//
// What a row holds keeps its bits; sums over rows keep their order, but a
// contraction over rows rounds once per chunk. O(seeds · group · chunks). Not done
// here: chunks of columns, which need every column twice.
//
//===----------------------------------------------------------------------===//

#include "BlockOrder.h"
#include "fsdp/Fuse/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CHUNKROWSPASS
#include "fsdp/Fuse/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static constexpr unsigned maxMembers = 64; ///< a loss has a dozen

static int64_t countBytes(Type of) {
  auto type = cast<RankedTensorType>(of);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}
static int64_t countBytes(Value v) { return countBytes(v.getType()); }

namespace {
/// The ops that one wide result is computed by and used up in.
class Group {
public:
  Group(linalg::LinalgOp seed, unsigned rowLoop, int64_t limit)
      : block(seed->getBlock()), limit(limit) {
    rowLoops[seed] = rowLoop;
    members.insert(seed);
  }

  /// Steps 2: false where a result would have to be whole.
  bool grow();
  /// Step 3, in front of `last()`.
  void write(int64_t chunkRows);

  /// Is a wide result used up: summed over columns or rows?
  bool reduces() const;
  int64_t countRows() const;
  /// Of the wide results that are alive together, for one row.
  int64_t countRowBytes() const;
  Operation *last() const;

private:
  bool addUsers(Value wide);
  bool addMember(Operation *op);
  bool addBetween();
  void addRowScalars();
  llvm::SetVector<Operation *> findReaders(Operation *end) const;
  SmallVector<Operation *> getOrdered() const;
  bool readsRowsByLoop(linalg::LinalgOp op, unsigned loop) const;
  std::optional<unsigned> findRowLoop(linalg::LinalgOp op) const;
  bool isOverRows(Value v) const { return rowDims.contains(v); }
  void recordResults(linalg::LinalgOp op);
  void writeMember(OpBuilder &b, linalg::LinalgOp op, int64_t begin, int64_t rows,
                   IRMapping &mapping);

  Block *block;
  int64_t limit;
  llvm::SetVector<Operation *> members;
  llvm::SmallDenseMap<Operation *, unsigned> rowLoops;
  llvm::SmallDenseMap<Value, unsigned> rowDims; ///< results with a dimension of rows
};
} // namespace

/// The dimension of `operand` that is the loop `loop`: none, or nothing where it
/// is not a dimension by itself.
static std::optional<int> findDimension(AffineMap map, unsigned loop) {
  int found = -1;
  for (auto [i, result] : llvm::enumerate(map.getResults())) {
    if (result == getAffineDimExpr(loop, map.getContext()) && found < 0)
      found = i;
    else if (result.isFunctionOfDim(loop))
      return std::nullopt;
  }
  return found;
}

/// Elements that the body of `op` reads by itself.
static SmallVector<tensor::ExtractOp> getExtracts(Operation *op, Value from) {
  SmallVector<tensor::ExtractOp> extracts;
  op->walk([&](tensor::ExtractOp extract) {
    if (extract.getTensor() == from)
      extracts.push_back(extract);
  });
  return extracts;
}

/// Values from outside that the body of `op` reads.
static SmallVector<Value> getCaptures(Operation *op) {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  return captures.takeVector();
}

/// The loop that is the rows of what `op` reads from the group.
std::optional<unsigned> Group::findRowLoop(linalg::LinalgOp op) const {
  std::optional<unsigned> found;
  auto agree = [&](unsigned loop) {
    bool same = !found || *found == loop;
    found = loop;
    return same;
  };
  for (OpOperand *operand : op.getDpsInputOperands())
    if (auto dim = rowDims.find(operand->get()); dim != rowDims.end()) {
      auto expr =
          dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(operand).getResult(dim->second));
      if (!expr || !agree(expr.getPosition()))
        return std::nullopt;
    }
  for (Value capture : getCaptures(op))
    if (auto dim = rowDims.find(capture); dim != rowDims.end())
      for (tensor::ExtractOp extract : getExtracts(op, capture)) {
        auto index = extract.getIndices()[dim->second].getDefiningOp<linalg::IndexOp>();
        if (!index || index->getParentOp() != op || !agree(index.getDim()))
          return std::nullopt;
      }
  return found;
}

/// Is a sum over rows kept in less than f32? It would be rounded once more per chunk.
static bool roundsSums(linalg::LinalgOp op, unsigned loop) {
  return llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(init.get()));
    return type && type.getWidth() < 32 && !op.getMatchingIndexingMap(&init).isFunctionOfDim(loop);
  });
}

/// Is every operand either without rows, or has them as one dimension?
bool Group::readsRowsByLoop(linalg::LinalgOp op, unsigned loop) const {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    std::optional<int> dim = findDimension(op.getMatchingIndexingMap(&operand), loop);
    if (!dim)
      return false;
    auto known = rowDims.find(operand.get());
    if (known != rowDims.end() && *dim != int(known->second))
      return false;
  }
  for (Value capture : getCaptures(op)) // nothing but elements may be read
    if (isOverRows(capture) && llvm::any_of(capture.getUsers(), [&](Operation *user) {
          return op->isProperAncestor(user) && !isa<tensor::ExtractOp>(user);
        }))
      return false;
  return true;
}

void Group::recordResults(linalg::LinalgOp op) {
  unsigned loop = rowLoops.lookup(op);
  for (auto [result, init] : llvm::zip_equal(op->getResults(), op.getDpsInitsMutable()))
    if (int dim = *findDimension(op.getMatchingIndexingMap(&init), loop); dim >= 0)
      rowDims[result] = dim;
}

bool Group::addMember(Operation *op) {
  if (members.contains(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || op->getBlock() != block || members.size() == maxMembers ||
      !linalgOp.hasPureTensorSemantics())
    return false;
  std::optional<unsigned> loop = findRowLoop(linalgOp);
  if (!loop || !readsRowsByLoop(linalgOp, *loop) || roundsSums(linalgOp, *loop))
    return false;
  rowLoops[op] = *loop;
  members.insert(op);
  recordResults(linalgOp);
  return true;
}

/// Whatever reads a wide result has to be a member.
bool Group::addUsers(Value wide) {
  return llvm::all_of(wide.getUsers(), [&](Operation *user) {
    Operation *op = block->findAncestorOpInBlock(*user);
    return op && addMember(op);
  });
}

/// Operands, and what the regions read.
static SmallVector<Value> getRead(Operation *op) {
  SmallVector<Value> read(op->getOperands());
  llvm::append_range(read, getCaptures(op));
  return read;
}

/// Ops up to `end` that are no members and wait for one.
llvm::SetVector<Operation *> Group::findReaders(Operation *end) const {
  llvm::SetVector<Operation *> readers;
  for (Operation *op = getOrdered().front(); op != end; op = op->getNextNode())
    if (!members.contains(op) && llvm::any_of(getRead(op), [&](Value v) {
          Operation *def = v.getDefiningOp();
          return def && (members.contains(def) || readers.contains(def));
        }))
      readers.insert(op);
  return readers;
}

/// Ops that wait for a member, and that a member waits for.
bool Group::addBetween() {
  llvm::SetVector<Operation *> readers = findReaders(last()), between;
  SmallVector<Operation *> worklist(members.begin(), members.end());
  while (!worklist.empty())
    for (Value v : getRead(worklist.pop_back_val()))
      if (Operation *def = v.getDefiningOp(); def && readers.contains(def) && between.insert(def))
        worklist.push_back(def);
  return llvm::all_of(readers,
                      [&](Operation *op) { return !between.contains(op) || addMember(op); });
}

/// Maps of numbers per row that wait for members alone.
void Group::addRowScalars() {
  llvm::SetVector<Operation *> readers = findReaders(block->getTerminator());
  for (Operation *op : readers) {
    auto map = dyn_cast<linalg::GenericOp>(op);
    if (map && map.getNumLoops() == 1 && map.getNumParallelLoops() == 1 &&
        llvm::all_of(getRead(op), [&](Value v) {
          return isOverRows(v) || !v.getDefiningOp() ||
                 (!readers.contains(v.getDefiningOp()) && !members.contains(v.getDefiningOp()));
        }))
      addMember(op);
  }
}

bool Group::grow() {
  auto seed = cast<linalg::LinalgOp>(members.front());
  if (!readsRowsByLoop(seed, rowLoops.lookup(seed)))
    return false;
  recordResults(seed);
  for (size_t before = 0; before != members.size();) {
    before = members.size();
    for (size_t i = 0; i < members.size(); ++i)
      for (Value result : members[i]->getResults())
        if (isOverRows(result) && countBytes(result) > limit && !addUsers(result))
          return false;
    if (!addBetween())
      return false;
  }
  addRowScalars();
  // A member must not wait for a sum over all rows, nor read rows that it has not as a loop.
  return llvm::all_of(members, [&](Operation *op) {
    return llvm::all_of(getRead(op), [&](Value v) {
      Operation *def = v.getDefiningOp();
      return !def || !members.contains(def) || isOverRows(v);
    });
  });
}

SmallVector<Operation *> Group::getOrdered() const {
  SmallVector<Operation *> ordered(members.begin(), members.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

Operation *Group::last() const { return getOrdered().back(); }

bool Group::reduces() const {
  return llvm::any_of(members, [&](Operation *op) {
    return op != members.front() && cast<linalg::LinalgOp>(op).getNumReductionLoops() > 0 &&
           llvm::any_of(getRead(op),
                        [&](Value v) { return isOverRows(v) && countBytes(v) > limit; });
  });
}

int64_t Group::countRows() const {
  Value seed = members.front()->getResult(0);
  return cast<RankedTensorType>(seed.getType()).getDimSize(rowDims.lookup(seed));
}

/// A result of the type of an operand that ends there takes its place.
int64_t Group::countRowBytes() const {
  SmallVector<Operation *> ordered = getOrdered();
  llvm::SmallDenseMap<Value, Operation *> lastReaders;
  for (Operation *op : ordered)
    for (Value v : getRead(op))
      lastReaders[v] = op;
  int64_t alive = 0, most = 0;
  llvm::SetVector<Value> wide;
  for (Operation *op : ordered) {
    SmallVector<Type> ending;
    for (Value v : getRead(op))
      if (lastReaders.lookup(v) == op && wide.remove(v)) {
        alive -= countBytes(v);
        ending.push_back(v.getType());
      }
    int64_t meanwhile = 0; // what ends here and is not taken
    for (Value result : op->getResults())
      if (isOverRows(result) && countBytes(result) > limit) {
        alive += countBytes(result);
        wide.insert(result);
        if (auto *same = llvm::find(ending, result.getType());
            same != ending.end() && !isa<linalg::ContractOp>(op))
          ending.erase(same);
      }
    for (Type type : ending)
      meanwhile += countBytes(type);
    most = std::max(most, alive + meanwhile);
  }
  return llvm::divideCeil(most, countRows());
}

//===----------------------------------------------------------------------===//
// Step 3
//===----------------------------------------------------------------------===//

/// Rows [begin, begin + rows) of the dimension `dim`.
static Value slice(OpBuilder &b, Location loc, Value v, int64_t dim, int64_t begin, int64_t rows) {
  auto type = cast<RankedTensorType>(v.getType());
  if (Operation *fill = v.getDefiningOp();
      fill && isa<tensor::EmptyOp, linalg::FillOp>(fill)) { // of any shape
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

/// The number of a row is counted from the first chunk, but for where the row of a
/// chunk's value is read.
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

/// `mapping` has the values of this chunk, and sums up to the chunk before.
void Group::writeMember(OpBuilder &b, linalg::LinalgOp op, int64_t begin, int64_t rows,
                        IRMapping &mapping) {
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
      v = known; // of this chunk
    else if (dim >= 0)
      v = slice(b, op.getLoc(), v, dim, begin, rows);
    else if (isInit && begin > 0) // a sum that goes on
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
      [&](Operation *inner) { // clone() maps what the op itself reads, not its captures
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

void Group::write(int64_t chunkRows) {
  SmallVector<Operation *> ordered = getOrdered();
  OpBuilder b(ordered.back()->getNextNode());
  IRMapping mapping;
  llvm::MapVector<Value, SmallVector<Value>> parts;
  for (int64_t begin = 0, all = countRows(); begin < all; begin += chunkRows) {
    for (Operation *op : ordered)
      for (Value result : op->getResults())
        if (isOverRows(result))
          mapping.erase(result);
    for (Operation *op : ordered)
      writeMember(b, cast<linalg::LinalgOp>(op), begin, std::min(chunkRows, all - begin), mapping);
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
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ChunkRowsPass : fsdp::impl::ChunkRowsPassBase<ChunkRowsPass> {
  using ChunkRowsPassBase::ChunkRowsPassBase;

  bool chunk(linalg::LinalgOp seed);
  void runOnOperation() override;
};
} // namespace

/// Step 1: loops that the result and the first operand have, but not the second; long ones first.
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

/// Rows of a chunk: equal ones where the rows have a divisor that is not much less than what fits.
static int64_t chooseChunkRows(int64_t rows, int64_t fitting) {
  for (int64_t size = fitting; size * 4 > fitting * 3; --size)
    if (rows % size == 0)
      return size;
  return llvm::divideCeil(rows, llvm::divideCeil(rows, fitting));
}

bool ChunkRowsPass::chunk(linalg::LinalgOp seed) {
  for (unsigned loop : getRowLoops(seed)) {
    Group group(seed, loop, maxBytes);
    if (!group.grow() || !group.reduces())
      continue;
    int64_t rows = group.countRows(),
            fitting = std::max<int64_t>(maxBytes / group.countRowBytes(), minRows);
    if (rows <= fitting)
      continue;
    int64_t chunkRows = chooseChunkRows(rows, fitting);
    numChunks += llvm::divideCeil(rows, chunkRows);
    ++numGroups;
    if (remarks)
      seed.emitRemark() << "computed for " << chunkRows << " of " << rows << " rows at a time";
    group.write(chunkRows);
    return true;
  }
  return false;
}

void ChunkRowsPass::runOnOperation() {
  if (maxBytes == 0 || getOperation().isExternal())
    return;
  llvm::SmallPtrSet<Operation *, 8> whole;
  auto findSeed = [&] {
    linalg::LinalgOp seed;
    getOperation().walk([&](linalg::ContractOp op) {
      if (countBytes(op->getResult(0)) <= maxBytes || whole.contains(op))
        return WalkResult::advance();
      seed = cast<linalg::LinalgOp>(*op);
      return WalkResult::interrupt();
    });
    return seed;
  };
  while (linalg::LinalgOp seed = findSeed()) {
    Block *block = seed->getBlock();
    if (chunk(seed))
      restoreOrder(*block);
    else
      whole.insert(seed);
  }
}
