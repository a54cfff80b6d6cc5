//===- Sm80Backward.cpp - The kernels of attention's gradients --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   1. dQ, with lse and δ of each query to scratch      Sm80QueryGradients.cpp
//   2. dK and dV, or one after the other                Sm80KeyGradients.cpp
//
// or, by wgmma, those of Sm90Backward.cpp, and those of Sm80Captures.cpp around them where
// gradients of captured tensors are asked for.
//
// Configurations are chosen as in Sm80Plan.cpp. Registers of a thread:
//
//   rowPieces · blockCols                  S, and dP beside it
//   rowPieces · (dim / 2), (valueDim / 2)  sums
//   rowPieces · 8, factors, 48             as there
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Lowering.h"
#include "Sm90Backward.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;
using namespace mlir::fsdp::tile;

// warps, rowPieces, blockCols, blocksPerSm
static const Sm80Row queries16[] = {
    {64, {4, 1, 64, 2}}, {128, {8, 1, 64, 1}}, {256, {4, 1, 32, 1}}};
static const Sm80Row queries32[] = {
    {64, {4, 1, 32, 1}}, {128, {4, 1, 32, 1}}, {256, {2, 1, 16, 1}}};
static const Sm80Row keys16[] = {{64, {4, 1, 64, 2}}, {128, {8, 1, 32, 1}}, {256, {4, 1, 32, 1}}};
static const Sm80Row keys32[] = {{64, {4, 1, 32, 1}}, {128, {4, 1, 16, 1}}, {256, {2, 1, 16, 1}}};

static int64_t otherRegisters(const Sm80Config &c, Type element) {
  return c.rowPieces * (c.blockCols + 8) + (c.rowPieces * 4 + 8) * (element.isF32() ? 2 : 1) + 48;
}

/// Rows of this block, twice those of the other side, of both tensors.
static int64_t bytesOfTiles(const Sm80Config &c, const Shape &shape, Type element) {
  return (c.blockRows() + 2 * c.blockCols) *
         (Sm80Tiles::pitchOf(element, shape.dim) + Sm80Tiles::pitchOf(element, shape.valueDim));
}

Sm80Needs attention::queryNeeds(const Sm80Config &c, const Shape &shape, Type element) {
  return {otherRegisters(c, element) + c.rowPieces * Sm80Tiles::paddedCols(shape.dim) / 2,
          bytesOfTiles(c, shape, element)};
}

Sm80Needs attention::keyNeeds(const Sm80Config &c, const Shape &shape, Type element, bool wantsK,
                              bool wantsV) {
  int64_t sums = (wantsK ? Sm80Tiles::paddedCols(shape.dim) : 0) +
                 (wantsV ? Sm80Tiles::paddedCols(shape.valueDim) : 0);
  return {otherRegisters(c, element) + c.rowPieces * sums / 2,
          bytesOfTiles(c, shape, element) + 4 * c.blockCols * 4};
}

void Sm80Backward::placeNorms(const Shape &shape, int64_t stride) {
  rowStride = stride;
  delta = shape.batch * shape.heads * rowStride;
  scratchBytes = 2 * delta * 4;
}

std::optional<Sm80Backward> attention::chooseBackward(const Shape &shape, Type element,
                                                      const GpuTarget &target) {
  bool isWide = element.isF32();
  auto choose = [&](ArrayRef<Sm80Row> table, int64_t rows, int64_t cols, auto needs) {
    return chooseRow(table, shape, rows, cols,
                     [&](const Sm80Config &config) { return fits(config, needs(config), target); });
  };
  auto queries = choose(isWide ? ArrayRef(queries32) : ArrayRef(queries16), shape.rows, shape.cols,
                        [&](const Sm80Config &c) { return queryNeeds(c, shape, element); });
  auto keys = [&](bool wantsK, bool wantsV) {
    return choose(isWide ? ArrayRef(keys32) : ArrayRef(keys16), shape.cols, shape.rows,
                  [&](const Sm80Config &c) { return keyNeeds(c, shape, element, wantsK, wantsV); });
  };
  if (!queries)
    return std::nullopt;
  Sm80Backward plan{*queries, {}, {}};
  if (auto both = keys(true, true)) {
    plan.keys = {*both};
  } else {
    auto forK = keys(true, false), forV = keys(false, true);
    if (!forK || !forV)
      return std::nullopt;
    plan.keys = {*forK, *forV};
  }
  plan.placeNorms(shape, shape.rows);
  return plan;
}

namespace {
/// The launches of a kernel, one after the other.
class BackwardLaunches {
public:
  BackwardLaunches(const Sm80Problem &problem, ModuleOp entries, GpuKernel &info)
      : problem(problem), plan(problem.plan), shape(problem.shape), op(problem.op),
        captures(problem.captures),
        element(cast<RankedTensorType>(op.getQ().getType()).getElementType()), entries(entries),
        info(info) {}

  /// dQ, dK and dV.
  void gradients();
  void queries(bool tables);
  /// A kernel of Sm80Captures.
  void around(int64_t blocks, void (Sm80Captures::*emit)(GpuBuilder &, func::FuncOp) const) {
    launch(Sm80Captures::threads, 1, blocks, 0,
           [&](Sm80Tiles &b) { (captures.*emit)(b, problem.kernel); });
  }

private:
  void keys();
  std::string nextSymbol() const {
    return info.info.name +
           (info.launches.empty() ? "" : "_" + std::to_string(info.launches.size()));
  }
  void launch(int64_t threads, int64_t minBlocks, int64_t units, int64_t sharedBytes,
              function_ref<void(Sm80Tiles &)> emit);

  const Sm80Problem &problem;
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  const Sm80Captures &captures;
  Type element;
  ModuleOp entries;
  GpuKernel &info;
};
} // namespace

void BackwardLaunches::launch(int64_t threads, int64_t minBlocks, int64_t units,
                              int64_t sharedBytes, function_ref<void(Sm80Tiles &)> emit) {
  if (!units)
    return;
  std::string symbol = nextSymbol();
  Sm80Tiles b(op.getLoc(), op.getContext(), threads, element);
  b.enter(entries, problem.kernel, symbol, minBlocks, /*scratch=*/true);
  emit(b);
  b.leave();
  info.launches.push_back({symbol, units, threads, sharedBytes, {}});
}

void BackwardLaunches::queries(bool tables) {
  const Sm80Config &rows = plan.queries;
  launch(rows.threads(), rows.blocksPerSm,
         shape.batch * shape.heads * llvm::divideCeil(shape.rows, rows.blockRows()),
         queryNeeds(rows, shape, element).sharedBytes,
         [&](Sm80Tiles &b) { emitQueryGradients(b, problem, tables); });
}

void BackwardLaunches::keys() {
  if (plan.keysOfGroups)
    return lowerSm90Keys(problem, *plan.keysOfGroups, nextSymbol(), entries, info);
  for (auto [number, config] : llvm::enumerate(plan.keys)) {
    bool alone = plan.keys.size() == 1, wantsK = alone || number == 0,
         wantsV = alone || number == 1;
    launch(config.threads(), config.blocksPerSm,
           shape.batch * shape.kvHeads * llvm::divideCeil(shape.cols, config.blockRows()),
           keyNeeds(config, shape, element, wantsK, wantsV).sharedBytes,
           [&, &config = config](Sm80Tiles &b) {
             emitKeyGradients(b, problem, config, wantsK, wantsV);
           });
  }
}

void BackwardLaunches::gradients() {
  if (!plan.keysOfGroups || !plan.keysOfGroups->addsToQ) {
    queries(/*tables=*/false);
    return keys();
  }
  launch(normThreads, 1, normBlocks(problem), 0, [&](Sm80Tiles &b) { emitNorms(b, problem); });
  keys();
  if (!op.getDq().use_empty())
    launch(2 * plan.keysOfGroups->blockQueries, 1, queriesOfSumsBlocks(problem), 0,
           [&](Sm80Tiles &b) { emitQueriesOfSums(b, problem); });
}

LogicalResult attention::lowerSm80Backward(func::FuncOp kernel, AttentionGradOp op,
                                           const GpuTarget &target, ModuleOp entries,
                                           GpuKernel &info) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  std::optional<Sm80Backward> plan = chooseBackward(shape, element, target);
  assert(plan && "whyNoGpuKernel has said so");
  plan->keysOfGroups = chooseSm90Keys(op, target);
  if (plan->keysOfGroups)
    placeSm90Scratch(*plan, shape);
  Sm80Captures captures(op, shape, plan->queries, plan->scratchBytes);
  info.scratchBytes = captures.scratchBytes();
  Sm80Problem problem{*plan, shape, op, kernel, captures};
  BackwardLaunches launches(problem, entries, info);
  if (!captures.empty())
    launches.around(captures.clearBlocks(), &Sm80Captures::emitClear);
  launches.gradients();
  if (captures.hasTables())
    launches.queries(/*tables=*/true);
  launches.around(captures.scatterBlocks(), &Sm80Captures::emitScatter);
  launches.around(captures.convertBlocks(), &Sm80Captures::emitConvert);
  return success();
}
