//===- Clusters.cpp - Which ops share a kernel ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Greedy producer-consumer grouping, in program order.
//
//   %s = row sum of %x          rows [N]   cluster 0: {s, m, y}, a layer norm
//   %m = %s / C                 rows [N]
//   %y = (%x - %m) * ...        rows [N]
//   %h = contract %y, %w        rows [N,M] cluster 1: {h, g}
//   %g = gelu(%h + %b)          rows [N,M]
//
// An op joins the latest cluster that produces one of its operands when
//  1. the two are at most `window` ops apart;
//  2. they run over common leading parallel loops: a reduction's are those before
//     its first reduced loop, a map's are all of its loops or as many as the cluster has;
//  3. it reads the cluster's values, and writes its own, at equal rows;
//  4. nothing it reads depends on the cluster through another kernel.
// Else it opens a cluster. Contractions and scatters always open one, and only
// maps over their whole result join it. Ops on a handful of elements join freely.
//
// O(ops · window). Not done here: siblings that share inputs only.
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t smallElements = 16; // "a handful"
static constexpr int64_t broadcastGain = 4;  // a broadcast this much wider than its inputs is never stored

StringRef fsdp::stringify(ClusterKind kind) {
  static constexpr StringLiteral names[] = {"map", "row", "column", "contract", "scatter", "scalar", "copy"};
  return names[static_cast<unsigned>(kind)];
}

static int64_t numElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

SmallVector<Value> fsdp::readValues(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), values);
  return values.takeVector();
}

bool fsdp::isContiguousView(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return true;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || !slice.hasUnitStride() || !slice.getSourceType().hasStaticShape())
    return false;
  bool whole = true; // of all dimensions behind this one
  ArrayRef<int64_t> sizes = slice.getStaticSizes(), source = slice.getSourceType().getShape();
  for (int64_t d = source.size() - 1; d >= 0; --d) {
    if (!whole && sizes[d] != 1)
      return false;
    whole &= sizes[d] == source[d];
  }
  return true;
}

/// A view of a strided view is strided as well.
static bool isStridedView(Operation *op) {
  if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(op))
    return false;
  if (!isContiguousView(op))
    return true;
  Operation *source = op->getOperand(0).getDefiningOp();
  return source && isStridedView(source);
}

/// An elementwise op without costly arithmetic whose result is much larger than what it reads.
static bool isCheapBroadcast(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() || generic->getNumResults() != 1)
    return false;
  for (Operation &o : *generic.getBody())
    if (isa<arith::DivFOp, tensor::ExtractOp>(o) || isa<math::MathDialect>(o.getDialect()))
      return false;
  int64_t read = 0;
  for (Value in : generic.getInputs())
    read += numElements(in.getType());
  bool all = llvm::all_of(generic->getUsers(), [](Operation *user) { return isa<linalg::GenericOp>(user); });
  return all && read * broadcastGain <= numElements(generic->getResultTypes()[0]);
}

bool fsdp::isAuxiliary(Operation *op) {
  if (isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp, tensor::SplatOp>(op))
    return true;
  bool scalar = llvm::none_of(op->getResultTypes(), [](Type t) { return isa<TensorType>(t); });
  if (scalar && op->getNumRegions() == 0)
    return isPure(op) && op->getNumResults() != 0;
  return isStridedView(op) || isCheapBroadcast(op);
}

/// Does this op compute (and not only move ranks, bytes or control)?
static bool isComputation(Operation *op) {
  if (isAuxiliary(op) || op->hasTrait<OpTrait::IsTerminator>() || op->getNumResults() == 0)
    return false;
  if (isa<linalg::LinalgOp, ScatterAddRowsOp>(op))
    return true;
  return isa<tensor::TensorDialect, arith::ArithDialect, math::MathDialect>(op->getDialect()) && !isContiguousView(op);
}

/// The leading parallel loops that the results run over.
static unsigned naturalRows(linalg::LinalgOp op) {
  unsigned n = 0;
  for (utils::IteratorType type : op.getIteratorTypesArray()) {
    if (type != utils::IteratorType::parallel)
      break;
    ++n;
  }
  return n;
}

/// How many leading results of the map are d0, d1, ...
static unsigned alignedPrefix(AffineMap map) {
  unsigned n = 0;
  for (AffineExpr e : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    if (!dim || dim.getPosition() != n)
      break;
    ++n;
  }
  return n;
}

static bool isSmall(Operation *op) {
  auto few = [](Type type) { return numElements(type) <= smallElements; };
  return llvm::all_of(op->getResultTypes(), few) &&
         llvm::all_of(readValues(op), [&](Value v) { return few(v.getType()); });
}

static ClusterKind kindOf(Operation *op) {
  if (isa<ScatterAddRowsOp>(op))
    return ClusterKind::Scatter;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp)
    return ClusterKind::Copy;
  if (isa<linalg::ContractOp>(op))
    return ClusterKind::Contract;
  if (linalgOp.getNumReductionLoops())
    return naturalRows(linalgOp) ? ClusterKind::Row : ClusterKind::Column;
  bool moves = linalgOp.getNumLoops() > 1 && linalgOp.getBlock()->getOperations().size() == 1;
  bool permutes = llvm::any_of(linalgOp.getIndexingMapsArray(), [](AffineMap m) {
    return alignedPrefix(m) != m.getNumResults() && m.isProjectedPermutation() && m.getNumResults() > 1;
  });
  return moves && permutes ? ClusterKind::Copy : ClusterKind::Map;
}

ClusterBuilder::ClusterBuilder(Block &block, unsigned window) : block(block), window(window) {
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  for (Operation &op : block)
    if (isComputation(&op))
      place(&op);
  for (Cluster &cluster : clusters)
    if (cluster.small && cluster.kind != ClusterKind::Contract && cluster.kind != ClusterKind::Scatter)
      cluster.kind = ClusterKind::Scalar;
}

/// Clusters that op reads from directly, or through auxiliary ops; the latest first.
SmallVector<unsigned> ClusterBuilder::producers(Operation *op) {
  llvm::SetVector<unsigned> found;
  SmallVector<Value> worklist = readValues(op);
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != &block)
      continue;
    if (auto it = clusterOf.find(def); it != clusterOf.end())
      found.insert(it->second);
    else if (isAuxiliary(def))
      llvm::append_range(worklist, readValues(def));
  }
  SmallVector<unsigned> result = found.takeVector();
  llvm::sort(result, std::greater<>());
  return result;
}

void ClusterBuilder::place(Operation *op) {
  for (unsigned cluster : producers(op))
    if (join(op, cluster))
      return;
  Cluster fresh;
  fresh.kind = kindOf(op);
  fresh.small = isSmall(op);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (isa<linalg::ContractOp>(op)) { // joined over the whole result
      fresh.rows.assign(cast<RankedTensorType>(op->getResultTypes()[0]).getShape());
    } else {
      fresh.rows = linalgOp.getStaticLoopRanges();
      fresh.rows.resize(naturalRows(linalgOp));
    }
  }
  fresh.members = {op};
  clusterOf[op] = clusters.size();
  clusters.push_back(std::move(fresh));
}

/// Does op read each value of the cluster, and write, with d0, d1, .. as the first `rows` indices?
static bool meetsAtRows(linalg::LinalgOp op, const Cluster &cluster, unsigned rows) {
  llvm::SmallPtrSet<Operation *, 8> members(cluster.members.begin(), cluster.members.end());
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *def = operand.get().getDefiningOp();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool fromCluster = def && members.contains(def);
    if ((fromCluster || op.isDpsInit(&operand)) && alignedPrefix(map) < rows)
      return false;
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value v : captured) // read at any row
    if (Operation *def = v.getDefiningOp(); def && members.contains(def))
      return false;
  return true;
}

/// The number of common loops when op joins the cluster; 0 when it cannot.
static unsigned commonRows(linalg::GenericOp op, const Cluster &cluster) {
  ClusterKind kind = kindOf(op);
  if (kind != ClusterKind::Map && kind != ClusterKind::Row)
    return 0;
  unsigned natural = naturalRows(op), common = cluster.rows.size();
  if (cluster.kind == ClusterKind::Map) // its rows shrink to those of a reduction
    common = std::min(common, natural);
  else if (cluster.kind == ClusterKind::Row && (kind == ClusterKind::Row ? natural != common : natural < common))
    return 0;
  else if (cluster.kind == ClusterKind::Contract && (kind != ClusterKind::Map || natural != common))
    return 0;
  else if (cluster.kind != ClusterKind::Row && cluster.kind != ClusterKind::Contract)
    return 0;
  SmallVector<int64_t, 4> ranges = op.getStaticLoopRanges();
  if (ArrayRef<int64_t>(ranges).take_front(common) != ArrayRef(cluster.rows).take_front(common))
    return 0;
  return meetsAtRows(op, cluster, common) ? common : 0;
}

bool ClusterBuilder::join(Operation *op, unsigned index) {
  Cluster &cluster = clusters[index];
  if (position[op] - position[cluster.members.back()] > window)
    return false;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  unsigned common = generic ? commonRows(generic, cluster) : 0;
  bool freely = cluster.small && isSmall(op);
  if ((!common && !freely) || closesCycle(op, index))
    return false;
  cluster.rows.resize(common); // none left when only smallness joined them
  cluster.small &= isSmall(op);
  if (common && kindOf(op) == ClusterKind::Row)
    cluster.kind = ClusterKind::Row;
  cluster.members.push_back(op);
  clusterOf[op] = index;
  return true;
}

/// Would the kernel need a value that is computed, by another, from its own results?
bool ClusterBuilder::closesCycle(Operation *op, unsigned index) {
  unsigned first = position[clusters[index].members.front()];
  SmallVector<Value> worklist = readValues(op);
  llvm::SmallPtrSet<Operation *, 32> seen;
  bool direct = true; // values of the cluster itself may be read by op
  auto visit = [&](Operation *def) -> bool {
    if (!def || def->getBlock() != &block || position[def] < first || !seen.insert(def).second)
      return false;
    auto it = clusterOf.find(def);
    if (it != clusterOf.end() && it->second == index)
      return !direct;
    ArrayRef<Operation *> group = def;
    if (it != clusterOf.end())
      group = clusters[it->second].members;
    for (Operation *member : group) {
      seen.insert(member);
      llvm::append_range(worklist, readValues(member));
    }
    return false;
  };
  // Level one: what op reads, through auxiliary ops that would move into the kernel.
  SmallVector<Operation *> outside;
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != &block || position[def] < first)
      continue;
    auto it = clusterOf.find(def);
    if (it != clusterOf.end() && it->second == index)
      continue;
    if (it == clusterOf.end() && isAuxiliary(def))
      llvm::append_range(worklist, readValues(def));
    else
      outside.push_back(def);
  }
  direct = false;
  for (Operation *def : outside)
    if (visit(def))
      return true;
  while (!worklist.empty())
    if (visit(worklist.pop_back_val().getDefiningOp()))
      return true;
  return false;
}
