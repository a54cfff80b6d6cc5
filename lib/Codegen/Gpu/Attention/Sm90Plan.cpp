//===- Sm90Plan.cpp - Tiling of attention with wgmma ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the first configuration of a table that allows the head dimensions and that fits the
// registers and the shared memory. A model estimates the registers. In the model, a consumer thread
// needs these registers:
//
//   blockCols / 2       scores of the block that is multiplied
//   blockCols / 4       weights of the previous block
//   valueDim / 2        O
//   24                  addresses, counters, max and sum of two rows
//   24                  values of score functions, if there are any
//   8                   elements of captured tensors, if one is read per key
//   40                  weight_mod, of which a tile has many values; in f32 24, for small blocks
//
// Shared memory holds Q, two buffers of K, two buffers of V, the barriers, and O if there is space.
// In f32, blocks of keys fill panels of Vᵀ, and the weights have as many registers as the scores.
// For exact products, a thread also holds the high and low parts of the weights. The kernel for
// mma.sync remains where the model of clocks predicts that it ends first, for few blocks.
//
// The file test/Codegen/Gpu/Inputs/ptxas-sm90a.txt lists the registers that ptxas reports.
//
//===----------------------------------------------------------------------===//

#include "AttentionClocks.h"
#include "Sm90Orders.h"
#include "Sm90Roles.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

namespace {
struct Row {
  int64_t dim; ///< upper limit for the larger one of the two head dimensions
  Sm90Config config;
};
} // namespace

// Each configuration lists groups, blockCols and inTurns.
static const Row forward[] = {{64, {3, 128, true}},  {64, {2, 128, true}},   {128, {2, 176, true}},
                              {128, {2, 128, true}}, {192, {2, 112, false}}, {192, {2, 96, false}},
                              {256, {2, 80, false}}, {256, {2, 64, false}}};
// For f32 also the buffers of K and of V.
static const Row exact[] = {
    {128, {2, 32}}, {192, {1, 32, false, false, 2, 1}}, {256, {1, 32, false, false, 1, 1}}};
static const Row tf32[] = {
    {64, {2, 128, true}}, {128, {2, 64, true}}, {192, {2, 32, true}}, {256, {1, 32}}};

Sm80Needs attention::sm90ForwardNeeds(const Sm90Config &c, const Shape &shape,
                                      int64_t functionRegisters) {
  int64_t weights = c.blockCols / 4 * (c.splits ? 4 : c.isWide ? 2 : 1);
  int64_t registers =
      c.blockCols / 2 + weights + paddedValueDim(shape) / 2 + 24 + functionRegisters;
  return {registers, Sm90Places(c, shape).bytes()};
}

static int64_t registersOfFunctions(AttentionOp op, bool isWide) {
  bool any = false, readsKeys = false;
  for (Region *region : {&op.getScoreMod(), &op.getMaskMod(), &op.getWeightMod()}) {
    if (region->empty())
      continue;
    any = true;
    RegionDependence dependence(*region);
    for (auto extract : region->getOps<tensor::ExtractOp>())
      readsKeys |= (dependence.of(extract.getResult()) | Dependence::Row) == Dependence::Both;
  }
  return (any ? 24 : 0) + (readsKeys ? 8 : 0) + (op.getWeightMod().empty() ? 0 : isWide ? 24 : 40);
}

/// Returns true if the configuration fits. If there is space, O gets memory of its own.
static bool makeFit(Sm90Config &config, const Shape &shape, int64_t functionRegisters,
                    const GpuTarget &target) {
  for (bool own : {true, false}) {
    config.ownOutput = own;
    Sm80Needs needs = sm90ForwardNeeds(config, shape, functionRegisters);
    if (needs.registers <= registersOfRoles(config.groups, config.producerRegisters()).consumer &&
        needs.sharedBytes <= target.sharedPerBlock)
      return true;
  }
  return false;
}

/// Returns true if the kernel with mma.sync takes fewer clocks than the kernel with wgmma.
static bool isSlowerThanMma(AttentionOp op, const Sm90Config &config, const Shape &shape,
                            const GpuTarget &target) {
  if (op->getParentOp()->hasAttr(attentionOrderAttr))
    return false;
  Type element = op.getQ().getType().getElementType();
  std::optional<Sm80Config> other = chooseForward(shape, element, target);
  FailureOr<QueryOrder> order = chooseSm90Order(op, config, shape, target);
  if (!other || failed(order))
    return false;
  Sm80Work work = workOf(AttentionPass::Forward, AttentionTiles(op), workOfFunctions(op), *other,
                         shape, element, target);
  return costOf(work, attention::chooseQueryOrder(work)).clocks <
         costOfForward(op, config, shape, *order, target).clocks;
}

std::optional<Sm90Config> attention::chooseSm90Forward(AttentionOp op, const GpuTarget &target) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType(), v = op.getV().getType();
  if (!target.hasWarpgroups() || !hasTensorMap(q) || !hasTensorMap(k) || !hasTensorMap(v) ||
      !hasTensorMap(op.getO().getType()))
    return std::nullopt;
  Shape shape = getShape(q, k, v);
  bool isWide = q.getElementType().isF32(),
       splits = isWide && target.f32Products == F32Products::Exact;
  int64_t functionRegisters = registersOfFunctions(op, isWide);
  for (const Row &row : !isWide ? ArrayRef(forward) : splits ? ArrayRef(exact) : ArrayRef(tf32)) {
    Sm90Config config = row.config;
    if (std::max(shape.dim, shape.valueDim) > row.dim)
      continue;
    config.isWide = isWide;
    config.splits = splits;
    if (shape.rows <= Sm90Builder::groupRows)
      config.groups = 1;
    config.inTurns &= config.groups > 1;
    config.blockCols =
        std::min<int64_t>(config.blockCols, llvm::alignTo(shape.cols, isWide ? 32 : 16));
    if (makeFit(config, shape, functionRegisters, target) &&
        !(isWide && isSlowerThanMma(op, config, shape, target)))
      return config;
  }
  return std::nullopt;
}
