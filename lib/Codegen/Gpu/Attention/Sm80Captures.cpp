//===- Sm80Captures.cpp - Gradients of captured tensors on GPUs --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The way in which contributions are summed depends on the arguments (b, h, q, k) that occur in the
// indices of the op fsdp.contribute:
//
//   none, b, h       by each warp, over its elements            one sum per warp and head
//   q                along the row, by the same warps           one per head and query; with wgmma,
//                                                               one for each block of keys, too
//   k                by the threads that have the key           one per head and key
//   q and k          a second run computes the scores again and adds to a table
//
// Thousands of threads add to a table in unknown order. Therefore they add integers, because the
// sum of integers does not depend on the order. Each contribution is multiplied by a power of two
// and rounded to an integer. The power is chosen such that the largest possible sum fits 62 bits.
// To choose the power, the kernels compute the largest magnitude of all contributions before they
// add to tables. If n contributions are added to an element, the rounding error of each
// contribution is less than the largest magnitude times 2^-(61 - log2(n)).
//
//   clear      tables and maxima
//   queries, keys, [tables]
//   scatter    adds the sums in scratch to the tables
//   convert    tables to results
//
// If a contribution is not finite, all elements of the gradient become NaN.
//
//===----------------------------------------------------------------------===//

#include "Sm80Captures.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

static constexpr int64_t bitsOfSum = 62;
static constexpr int64_t infinityBits = 0x7f800000;

Sm80Captures::Sm80Captures(AttentionGradOp op, const Shape &shape, int64_t headSums,
                           int64_t keyBlocks, int64_t firstByte)
    : op(op), shape(shape), end(llvm::alignTo(firstByte, 8)) {
  auto take = [&](int64_t bytes) {
    end += llvm::alignTo(bytes, 8);
    return end - static_cast<int64_t>(llvm::alignTo(bytes, 8));
  };
  bool used = llvm::any_of(op.getDcaptures(), [](Value v) { return !v.use_empty(); });
  if (!used)
    return;
  for (const CapturedFloat &captured : collectCapturedFloats(op))
    gradients.push_back({captured});
  int64_t heads = shape.batch * shape.heads;
  // With a mask, some blocks of keys do not visit some queries, and store no sums for these.
  auto isSparse = [&](const Sm80Contribution &c) {
    return c.where == Dependence::Row && keyBlocks > 0 && !op.getMaskMod().empty();
  };
  for (const Contributed &c : collectContributions(op)) {
    Sm80Contribution own{c};
    int64_t counts[] = {heads * headSums, heads * std::max<int64_t>(keyBlocks, 1) * shape.rows,
                        heads * shape.cols, 0};
    own.count = counts[static_cast<unsigned>(c.where)];
    if (!isSparse(own))
      own.offset = take(own.count * 4);
    gradients[c.gradient].contributions += own.count ? own.count : heads * shape.rows * shape.cols;
    contributions.push_back(own);
  }
  clearFrom = end;
  for (Sm80Contribution &own : contributions)
    if (isSparse(own))
      own.offset = take(own.count * 4);
  for (Sm80Gradient &gradient : gradients) {
    if (gradient.result.use_empty())
      continue;
    gradient.largest = take(8);
    gradient.table = take(gradient.type.getNumElements() * 8);
  }
}

Value attention::largerOrNan(GpuBuilder &b, Value x, Value y) {
  return arith::MaximumFOp::create(b, b.loc, x, y);
}

bool Sm80Captures::hasTables() const { return !of(Dependence::Both).empty(); }

SmallVector<const Sm80Contribution *> Sm80Captures::of(Dependence where) const {
  SmallVector<const Sm80Contribution *> found;
  for (const Sm80Contribution &c : contributions)
    if (c.where == where)
      found.push_back(&c);
  return found;
}

static Pointer at(GpuBuilder &b, int64_t bytes, Type type) {
  Pointer scratch = b.scratch(b.getI8Type());
  return {b.address(b.shift(scratch, b.constant(bytes))), type, b.constant(0)};
}

static void update(GpuBuilder &b, LLVM::AtomicBinOp how, const Pointer &place, Value value) {
  LLVM::AtomicRMWOp::create(b, b.loc, how, b.address(place), value,
                            LLVM::AtomicOrdering::monotonic);
}

Value Sm80Captures::valueOf(GpuBuilder &b, const Sm80Contribution &c, ValueAt at,
                            Value keep) const {
  ContributeOp contribute = c.op;
  Value value = b.convertFloat(at(contribute.getValue()), b.getF32Type());
  return keep ? b.select(keep, value, b.number(0)) : value;
}

/// Computes the maximum of floats by an integer operation on their bits, because the bits of
/// non-negative floats, read as integers, have the same order as the floats.
void Sm80Captures::noteLargest(GpuBuilder &b, const Sm80Contribution &c, Value size) const {
  Value bits =
      arith::BitcastOp::create(b, b.loc, b.getI32Type(), math::AbsFOp::create(b, b.loc, size));
  update(b, LLVM::AtomicBinOp::umax, at(b, gradients[c.gradient].largest, b.getI32Type()), bits);
}

void Sm80Captures::storePart(GpuBuilder &b, const Sm80Contribution &c, Value index,
                             Value sum) const {
  b.store(sum, b.shift(at(b, c.offset, b.getF32Type()), b.to64(index)));
}

void Sm80Captures::storeSum(GpuBuilder &b, const Sm80Contribution &c, Value index,
                            Value sum) const {
  storePart(b, c, index, sum);
  noteLargest(b, c, sum);
}

/// Returns 2^e if `sign` is 1, or 2^-e if `sign` is -1. Here e is the largest exponent such that no
/// sum of the table can overflow if contributions are multiplied by 2^e.
Value Sm80Captures::scaleOf(GpuBuilder &b, const Sm80Gradient &gradient, int64_t sign) const {
  Value bits = b.load(b.getI32Type(), at(b, gradient.largest, b.getI32Type()));
  // The largest magnitude is below 2^(exponent - 126).
  Value exponent = arith::ShRUIOp::create(b, b.loc, bits, b.i32(23));
  int64_t room = bitsOfSum - llvm::Log2_64_Ceil(std::max<int64_t>(gradient.contributions, 1));
  Value e = b.sub(b.i32(room + 126), b.max(exponent, b.i32(1)));
  Value biased = b.add(b.mul(e, sign), 1023);
  Value wide = arith::ShLIOp::create(b, b.loc, b.to64(biased), b.constant(52));
  return arith::BitcastOp::create(b, b.loc, b.getF64Type(), wide);
}

/// Adds `value` to the element of the table at `position`, which is an integer of 32 or 64 bits.
void Sm80Captures::addToTable(GpuBuilder &b, const Sm80Contribution &c, Value position, Value value,
                              Value scale) const {
  const Sm80Gradient &gradient = gradients[c.gradient];
  Value scaled = b.mulf(b.convertFloat(value, b.getF64Type()), scale);
  Value number = arith::FPToSIOp::create(b, b.loc, b.getI64Type(),
                                         math::RoundEvenOp::create(b, b.loc, scaled));
  Value place = position.getType().isInteger(64) ? position : b.to64(position);
  update(b, LLVM::AtomicBinOp::add, b.shift(at(b, gradient.table, b.getI64Type()), place), number);
}

void Sm80Captures::addToTables(GpuBuilder &b, const ScoreFunction &grad, ArrayRef<Value> scales,
                               ValueAt at, const Site &site, FragmentFunction::Values &values,
                               Value keep) const {
  for (auto [c, scale] : llvm::zip_equal(of(Dependence::Both), scales)) {
    Value value = valueOf(b, *c, at, keep);
    ContributeOp contribute = c->op;
    auto type = cast<RankedTensorType>(contribute.getCapture().getType());
    Value position = grad.emitPosition(b, type, contribute.getIndices(), site, values);
    auto add = [&, c = c, scale = scale] { addToTable(b, *c, position, value, scale); };
    keep ? b.when(keep, add) : add();
  }
}

static Value indexOfThread(GpuBuilder &b, int64_t firstBlock) {
  return b.add(b.mul(b.sub(b.to64(b.block()), b.constant(firstBlock)), Sm80Captures::threads),
               b.to64(b.thread()));
}

void Sm80Captures::emitClear(GpuBuilder &b, func::FuncOp) const {
  Value index = indexOfThread(b, 0);
  b.when(b.isLess(index, b.constant((end - clearFrom) / 8)),
         [&] { b.store(b.constant(0), b.shift(at(b, clearFrom, b.getI64Type()), index)); });
}

int64_t Sm80Captures::scatterBlocks() const {
  int64_t blocks = 0;
  for (const Sm80Contribution &c : contributions)
    blocks += llvm::divideCeil(c.count, threads);
  return blocks;
}

/// Adds partial sum `index` of a contribution to the table.
void Sm80Captures::scatterOne(GpuBuilder &b, const ScoreFunction &function,
                              const Sm80Contribution &c, Value index) const {
  int64_t perHead = c.count / (shape.batch * shape.heads);
  Value head = b.div(index, perHead), own = b.rem(index, perHead);
  Site site = siteOf(b, {b.div(head, shape.heads), b.rem(head, shape.heads), Value()});
  if (c.where == Dependence::Row)
    site.q = perHead == shape.rows ? own : b.rem(own, shape.rows);
  if (c.where == Dependence::Column)
    site.column = own;
  ScoreFunction::Values known;
  ContributeOp contribute = c.op;
  Value position =
      function.emitPosition(b, gradients[c.gradient].type, contribute.getIndices(), site, known);
  addToTable(b, c, position,
             b.load(b.getF32Type(), b.shift(at(b, c.offset, b.getF32Type()), index)),
             scaleOf(b, c));
}

/// Emits code that runs body(i, index) for all i and all index < counts[i]. A block of threads
/// processes indices of only one i.
static void inSegments(GpuBuilder &b, ArrayRef<int64_t> counts,
                       function_ref<void(size_t, Value)> body) {
  int64_t firstBlock = 0;
  for (auto [which, count] : llvm::enumerate(counts)) {
    int64_t blocks = llvm::divideCeil(count, Sm80Captures::threads);
    Value index = indexOfThread(b, firstBlock);
    Value mine = b.both(b.isLess(b.constant(-1), index), b.isLess(index, b.constant(count)));
    if (count)
      b.when(mine, [&, which = which] { body(which, index); });
    firstBlock += blocks;
  }
}

void Sm80Captures::emitScatter(GpuBuilder &b, func::FuncOp kernel) const {
  AttentionGradOp grad = op;
  if (contributions.empty())
    return;
  SmallVector<Captured> captured = llvm::map_to_vector(grad.getCaptures(), [&](Value capture) {
    return Captured{b.binding(capture), cast<RankedTensorType>(capture.getType())};
  });
  ScoreFunction function(grad.getScoreGrad(), leadingOfGrad, shape.extents(), captured);
  SmallVector<int64_t> counts =
      llvm::map_to_vector(contributions, [](const Sm80Contribution &c) { return c.count; });
  inSegments(b, counts, [&](size_t which, Value index) {
    scatterOne(b, function, contributions[which], index);
  });
}

int64_t Sm80Captures::convertBlocks() const {
  int64_t blocks = 0;
  for (const Sm80Gradient &gradient : gradients)
    if (!gradient.result.use_empty())
      blocks += llvm::divideCeil(gradient.type.getNumElements(), threads);
  return blocks;
}

void Sm80Captures::convertOne(GpuBuilder &b, const Sm80Gradient &gradient, const Pointer &out,
                              Value index) const {
  Value sum = b.load(b.getI64Type(), b.shift(at(b, gradient.table, b.getI64Type()), index));
  Value number = arith::SIToFPOp::create(b, b.loc, b.getF64Type(), sum);
  Value value = b.convertFloat(b.mulf(number, scaleOf(b, gradient, -1)), b.getF32Type());
  Value largest = b.load(b.getI32Type(), at(b, gradient.largest, b.getI32Type()));
  Value finite = b.isLower(largest, infinityBits);
  value = b.select(finite, value, b.number(std::numeric_limits<double>::quiet_NaN()));
  b.store(b.convertFloat(value, out.type), b.shift(out, index));
}

void Sm80Captures::emitConvert(GpuBuilder &b, func::FuncOp kernel) const {
  SmallVector<int64_t> counts = llvm::map_to_vector(gradients, [](const Sm80Gradient &g) {
    return g.result.use_empty() ? 0 : g.type.getNumElements();
  });
  inSegments(b, counts, [&](size_t which, Value index) {
    convertOne(b, gradients[which], b.destination(kernel, gradients[which].result), index);
  });
}
