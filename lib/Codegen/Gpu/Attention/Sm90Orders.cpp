//===- Sm90Orders.cpp - Orders of attention blocks with wgmma ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses among the orders of BlockOrder.h by the model of AttentionOrder.h, with the clocks of
// AttentionClocks.h. Several heads are processed together if the L2 cache has space for the data
// that the blocks of these heads share. In the forward pass, blocks share keys and values. In the
// backward pass, blocks share queries and the sums of their gradients.
//
//===----------------------------------------------------------------------===//

#include "Sm90Orders.h"
#include "AttentionClocks.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

/// Maximum number of bytes that blocks share if several heads are processed together. These bytes
/// must fit the L2 cache.
static constexpr int64_t cacheBytes = INT64_C(32) << 20;
/// Number of heads that are processed together if there is no mask. All blocks of keys of a head
/// then read the same queries at about the same time. Therefore reads of the queries of these heads
/// take less than half of the memory bandwidth, even if the heads do not fit the L2 cache.
static constexpr int64_t streamedHeads = 16;

namespace {
/// The parsed content of the attribute attentionOrderAttr, which has the form
/// "kind:together/parts".
struct AskedOrder {
  StringRef kind;
  int64_t together = 1, parts = 1;
};
} // namespace

/// Returns the order that the attribute of the kernel of `op` selects, or nothing if the kernel has
/// no such attribute.
static std::optional<AskedOrder> readAttribute(Operation *op) {
  auto text = op->getParentOp()->getAttrOfType<StringAttr>(attentionOrderAttr);
  if (!text)
    return std::nullopt;
  auto [order, parts] = text.getValue().split('/');
  auto [kind, together] = order.split(':');
  AskedOrder asked{kind};
  if ((!together.empty() && together.getAsInteger(10, asked.together)) ||
      (!parts.empty() && parts.getAsInteger(10, asked.parts)) || asked.together < 1 ||
      asked.parts < 1)
    asked.kind = "";
  return asked;
}

static InFlightDiagnostic emitBadOrder(Operation *op) {
  return emitError(op->getLoc()) << attentionOrderAttr << ": found "
                                 << op->getParentOp()->getAttr(attentionOrderAttr) << ", expected ";
}

/// Returns the clocks of the tiles of a head, by their row block, and adds their work to `all`.
static SmallVector<double> clocksOfTiles(AttentionOp op, const Sm90Config &config,
                                         const Shape &shape, GpuClocks &all) {
  KernelClocks clocks = clocksOf(config, shape, workOfFunctions(op));
  SmallVector<double> tiles;
  for (const BlockVisits &visits :
       getVisits(AttentionTiles(op).getKeyTiles(config.blockCols), shape.rows, config.blockRows()))
    tiles.push_back(clocks.run(visits, all));
  return tiles;
}

GpuCost attention::costOfForward(AttentionOp op, const Sm90Config &config, const Shape &shape,
                                 const QueryOrder &order, const GpuTarget &target) {
  GpuClocks ofHead;
  SmallVector<double> tiles = clocksOfTiles(op, config, shape, ofHead);
  TensorBytes bytes(shape, op.getQ().getType().getElementType());
  GpuCost cost = getLaunchCost(scheduleQueries(order, tiles, target.multiprocessors),
                               ofHead * static_cast<double>(order.heads), target.multiprocessors,
                               bytes.q + bytes.k + bytes.v + bytes.o + bytes.norms);
  cost.clocks += clocksOf(config, shape, workOfFunctions(op)).launchClocks;
  return cost;
}

FailureOr<QueryOrder> attention::chooseSm90Order(AttentionOp op, const Sm90Config &config,
                                                 const Shape &shape, const GpuTarget &target) {
  GpuClocks ofHead;
  SmallVector<double> tiles = clocksOfTiles(op, config, shape, ofHead);
  int64_t heads = shape.batch * shape.heads, rowBlocks = tiles.size(),
          bytes = shape.cols * (shape.dim + shape.valueDim) * config.elementBytes(),
          blocks = std::min(heads * rowBlocks, target.multiprocessors);
  std::optional<AskedOrder> asked = readAttribute(op);
  if (!asked)
    return fsdp::chooseQueryOrder(heads, shape.group, blocks, cacheBytes / bytes * shape.group,
                                  tiles, target.multiprocessors);
  QueryOrder order{heads, rowBlocks, blocks, asked->together, asked->kind == "pairs"};
  bool isKnown = order.pairs ? heads % 2 == 0 && asked->together == 1
                             : asked->kind == "sections" && heads % asked->together == 0;
  if (!isKnown || asked->parts != 1)
    return emitBadOrder(op) << "\"sections:HEADS\" with a divisor of " << heads
                            << ", or \"pairs\" if that is even";
  return order;
}

/// Returns the clocks of a kernel of keys.
static Sm90KeyClocks clocksOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape) {
  AttentionPass pass = config.tables ? AttentionPass::Tables : AttentionPass::Keys;
  FunctionWork work = workOfFunctions(op, pass, /*sumsAll=*/config.addsToQ);
  constexpr double ofRow = 2; // of an element: the exchange between lanes for a sum by query
  work.score.issue += ofRow * static_cast<double>(config.rowSums);
  return clocksOf(config, shape, work);
}

/// Returns the work of a kernel of keys.
static KeyWork workOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape) {
  Sm90KeyClocks clocks = clocksOfKeys(op, config, shape);
  KeyWork work;
  work.visits = getVisits(AttentionTiles(op).getRowTiles(config.blockQueries), shape.cols,
                          config.blockKeys());
  work.queryBlocks = llvm::divideCeil(shape.rows, config.blockQueries);
  work.group = shape.group;
  work.freeCycles = clocks.freeStep.clocks;
  work.maskedCycles = clocks.maskedStep.clocks;
  work.blockCycles = clocks.blockClocks;
  work.partCycles = clocks.partClocks;
  work.adds = config.addsToQ;
  work.addCycles = clocks.addClocks;
  work.loadCycles = clocks.loadClocks;
  work.rounds = config.addsToQ && !op.getDq().use_empty();
  work.roundCycles = clocks.roundClocks;
  return work;
}

GpuCost attention::costOfKeys(AttentionGradOp op, const Sm90Keys &config, const Shape &shape,
                              const KeyOrder &order, const GpuTarget &target) {
  KeyWork work = workOfKeys(op, config, shape);
  Sm90KeyClocks clocks = clocksOfKeys(op, config, shape);
  GpuClocks ofHead;
  for (const BlockVisits &visits : work.visits)
    clocks.run(visits, ofHead);
  TensorBytes bytes(shape, op.getQ().getType().getElementType());
  double moved = bytes.q + bytes.o + 2 * bytes.norms + 2 * (bytes.k + bytes.v);
  if (config.addsToQ)
    moved += static_cast<double>(shape.dim) * bytes.norms + bytes.q; // the sums, in f32, and dQ
  // No order of the plan waits for a later block.
  return getLaunchCost(*scheduleKeys(order, work, target.multiprocessors),
                       ofHead * static_cast<double>(shape.batch * shape.heads),
                       target.multiprocessors, moved);
}

KeyOrder attention::chooseFastestOrder(AttentionGradOp op, const Sm90Keys &config,
                                       const Shape &shape, const GpuTarget &target) {
  int64_t bytes = shape.rows * ((shape.dim + shape.valueDim) * 2 + shape.dim * 4),
          together = std::max(cacheBytes / bytes,
                              AttentionTiles(op).isUnmasked() ? streamedHeads : INT64_C(1));
  return chooseKeyOrder(shape.batch * shape.kvHeads, together, workOfKeys(op, config, shape),
                        target.multiprocessors);
}

FailureOr<KeyOrder> attention::chooseSm90KeyOrder(AttentionGradOp op, const Sm90Keys &config,
                                                  const Shape &shape, const GpuTarget &target) {
  int64_t kvHeads = shape.batch * shape.kvHeads,
          keyBlocks = llvm::divideCeil(shape.cols, config.blockKeys());
  std::optional<AskedOrder> asked = readAttribute(op);
  if (!asked)
    return chooseFastestOrder(op, config, shape, target);
  KeyOrder order{kvHeads, keyBlocks, asked->parts, asked->kind == "pairs", asked->together};
  bool isKnown = config.addsToQ && (asked->kind == "single" || asked->kind == "pairs");
  if (!isKnown || order.units() % order.together != 0 || shape.group % order.parts != 0)
    return emitBadOrder(op)
           << "\"single:HEADS/PARTS\" or \"pairs:PAIRS/PARTS\" with divisors HEADS of " << kvHeads
           << ", PAIRS of " << (kvHeads + 1) / 2 << " and PARTS of " << shape.group;
  return order;
}
