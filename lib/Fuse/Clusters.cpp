//===- Clusters.cpp - Group ops into kernels --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Groups ops with their producers greedily, in program order.
//
//   %s = row sum of %x          rows [N]   cluster 0: {s, m, y}, a layer norm
//   %m = %s / C                 rows [N]
//   %y = (%x - %m) * ...        rows [N]
//   %h = contract %y, %w        rows [N,M] cluster 1: {h, g}
//   %g = gelu(%h + %b)          rows [N,M]
//
// An op joins the latest cluster that produces one of its operands under these conditions:
//  1. The last op of the cluster is at most `window` ops before the op.
//  2. The op and the cluster have common leading parallel loops. The leading loops of a reduction
//     are the loops before its first reduced loop. The leading loops of a map are its first loops,
//     at most as many as the cluster has.
//  3. In each iteration of these loops (a row), the op uses only elements of the cluster's values
//     that belong to the row, and writes only elements of the row.
//  4. The op has no operand that another kernel computes from values of the cluster.
//  5. With the op, the cluster has at most `maxOps` ops, including the ops in bodies.
//
// Otherwise the op opens a cluster.
//  - A contraction or scatter always opens a cluster. Only maps over the whole result of a
//    contraction join its cluster.
//  - No op joins the cluster of attention.
//  - Ops on few elements, and insertions of slices into the same tensor, join without conditions 2
//    and 3.
//  - If other clusters also produce operands of the op, these clusters and the op's cluster are
//    merged under the same conditions.
//
// Takes O(ops · window) time. If two ops only read the same inputs, they are not grouped.
//
//===----------------------------------------------------------------------===//

#include "Clusters.h"
#include "fsdpcommon/KernelKinds.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Largest number of elements of a small value.
static constexpr int64_t smallElements = 16;

StringRef fsdp::stringify(ClusterKind kind) {
  static_assert(std::size(fsdpcommon::kernelKinds) == static_cast<size_t>(ClusterKind::Copy) + 2,
                "a name for each kind, and 'memory'");
  return fsdpcommon::kernelKinds[static_cast<unsigned>(kind)];
}

static int64_t numElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

int64_t fsdp::countOps(Operation *op) {
  int64_t count = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      count += block.getOperations().size();
  return std::max<int64_t>(count, 1);
}

SmallVector<Value> fsdp::readValues(Operation *op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), values);
  return values.takeVector();
}

bool fsdp::isAttention(Operation *op) { return isa<AttentionOp, AttentionGradOp>(op); }

bool fsdp::isComputation(Operation *op) {
  if (isAuxiliary(op) || op->hasTrait<OpTrait::IsTerminator>() || op->getNumResults() == 0)
    return false;
  if (isa<linalg::LinalgOp, ScatterAddRowsOp>(op) || isAttention(op))
    return true;
  return isa<tensor::TensorDialect, arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         !isContiguousView(op);
}

/// Returns the number of parallel loops before the first reduction loop.
static unsigned naturalRows(linalg::LinalgOp op) {
  unsigned n = 0;
  for (utils::IteratorType type : op.getIteratorTypesArray()) {
    if (type != utils::IteratorType::parallel)
      break;
    ++n;
  }
  return n;
}

/// Returns the largest n for which the first n results of the map are d0, d1, ...
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

/// Returns true for contractions, scatters and attention, which always have separate kernels.
static bool isHeavy(Operation *op) {
  return isa<linalg::ContractOp, ScatterAddRowsOp>(op) || isAttention(op);
}

static bool isSmall(Operation *op) {
  if (isHeavy(op))
    return false;
  auto few = [](Type type) { return numElements(type) <= smallElements; };
  return llvm::all_of(op->getResultTypes(), few) &&
         llvm::all_of(readValues(op), [&](Value v) { return few(v.getType()); });
}

static ClusterKind kindOf(Operation *op) {
  if (isa<ScatterAddRowsOp>(op))
    return ClusterKind::Scatter;
  if (isAttention(op))
    return ClusterKind::Attention;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp)
    return ClusterKind::Copy;
  if (isa<linalg::ContractOp>(op))
    return ClusterKind::Contract;
  if (linalgOp.getNumReductionLoops())
    return naturalRows(linalgOp) ? ClusterKind::Row : ClusterKind::Column;
  bool moves = linalgOp.getNumLoops() > 1 && linalgOp.getBlock()->getOperations().size() == 1;
  bool permutes = llvm::any_of(linalgOp.getIndexingMapsArray(), [](AffineMap m) {
    return alignedPrefix(m) != m.getNumResults() && m.isProjectedPermutation() &&
           m.getNumResults() > 1;
  });
  return moves && permutes ? ClusterKind::Copy : ClusterKind::Map;
}

ClusterBuilder::ClusterBuilder(Block &block, unsigned window, int64_t maxOps)
    : block(block), window(window), maxOps(maxOps) {
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  for (Operation &op : block)
    if (isComputation(&op))
      place(&op);
  // Erase the empty clusters, which were merged into other clusters.
  llvm::erase_if(clusters, [](const OpCluster &c) { return c.members.empty(); });
  for (OpCluster &cluster : clusters)
    if (cluster.small)
      cluster.kind = ClusterKind::Scalar;
}

/// Returns the clusters whose values op reads, directly or through auxiliary ops, the latest first.
SmallVector<unsigned> ClusterBuilder::producers(Operation *op) {
  llvm::SetVector<unsigned> found;
  SmallVector<Value> worklist = readValues(op);
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != &block)
      continue;
    if (auto it = clusterOf.find(def); it != clusterOf.end())
      found.insert(it->second);
    else if (auxiliary.contains(def))
      llvm::append_range(worklist, readValues(def));
  }
  SmallVector<unsigned> result = found.takeVector();
  llvm::sort(result, std::greater<>());
  return result;
}

void ClusterBuilder::place(Operation *op) {
  SmallVector<unsigned> candidates = producers(op);
  for (unsigned cluster : candidates) {
    if (!join(op, cluster))
      continue;
    for (unsigned other : candidates)
      if (other != cluster)
        merge(op, cluster, other);
    return;
  }
  OpCluster fresh;
  fresh.kind = kindOf(op);
  fresh.small = isSmall(op);
  fresh.size = countOps(op);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    // The common loops of a contraction and the maps that join it are the dimensions of its result.
    if (isa<linalg::ContractOp>(op)) {
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

/// Returns true if auxiliary ops move elements of the cluster's values to where `v` reads them.
bool ClusterBuilder::movesMembers(Value v, const llvm::SmallPtrSetImpl<Operation *> &members) {
  SmallVector<std::pair<Value, bool>> worklist{{v, false}}; // whether an op moves the value
  llvm::SmallDenseSet<std::pair<Operation *, unsigned>> seen;
  while (!worklist.empty()) {
    auto [value, moved] = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert({op, moved}).second)
      continue;
    if (members.contains(op)) {
      if (moved)
        return true;
    } else if (auxiliary.contains(op)) {
      for (Value read : readValues(op))
        worklist.push_back({read, moved || auxiliary.moves(op)});
    }
  }
  return false;
}

/// Returns true if the first `rows` indices are d0, d1, .. wherever op reads a value of the cluster
/// or writes its own results.
bool ClusterBuilder::meetsAtRows(linalg::LinalgOp op, const OpCluster &cluster, unsigned rows) {
  llvm::SmallPtrSet<Operation *, 8> members(cluster.members.begin(), cluster.members.end());
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *def = operand.get().getDefiningOp();
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool fromCluster = def && members.contains(def);
    if (movesMembers(operand.get(), members))
      return false;
    if ((fromCluster || op.isDpsInit(&operand)) && alignedPrefix(map) < rows)
      return false;
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value v : captured) // the body may read a captured value at any row
    if (Operation *def = v.getDefiningOp(); def && members.contains(def))
      return false;
  return true;
}

/// Returns true if `op` is a cheap map of a contraction's result that other ops also read, so that
/// the contraction's result is stored. The readers of `op` can then compute `op` themselves, and
/// the result of `op` need not be stored.
static bool isBetterLater(linalg::GenericOp op, const OpCluster &cluster) {
  return isCheapMap(op) && llvm::any_of(op.getInputs(), [&](Value in) {
           return llvm::is_contained(cluster.members, in.getDefiningOp()) && !in.hasOneUse();
         });
}

/// Returns the number of common loops after op joins the cluster, or 0 if op cannot join.
unsigned ClusterBuilder::commonRows(linalg::GenericOp op, const OpCluster &cluster) {
  ClusterKind kind = kindOf(op);
  if (kind != ClusterKind::Map && kind != ClusterKind::Row)
    return 0;
  unsigned natural = naturalRows(op), common = cluster.rows.size();
  if (cluster.kind == ClusterKind::Map) // a reduction may have fewer leading loops than the maps
    common = std::min(common, natural);
  else if (cluster.kind == ClusterKind::Row &&
           (kind == ClusterKind::Row ? natural != common : natural < common))
    return 0;
  else if (cluster.kind == ClusterKind::Contract &&
           (kind != ClusterKind::Map || natural != common || isBetterLater(op, cluster)))
    return 0;
  else if (cluster.kind != ClusterKind::Row && cluster.kind != ClusterKind::Contract)
    return 0;
  SmallVector<int64_t, 4> ranges = op.getStaticLoopRanges();
  if (ArrayRef<int64_t>(ranges).take_front(common) != ArrayRef(cluster.rows).take_front(common))
    return 0;
  return meetsAtRows(op, cluster, common) ? common : 0;
}

bool ClusterBuilder::join(Operation *op, unsigned index) {
  OpCluster &cluster = clusters[index];
  int64_t size = cluster.size + countOps(op);
  if (position[op] - position[cluster.members.back()] > window || size > maxOps)
    return false;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  unsigned common = generic ? commonRows(generic, cluster) : 0;
  auto insert = dyn_cast<tensor::InsertSliceOp>(op);
  bool assembles = insert && insert.getDest().getDefiningOp<tensor::InsertSliceOp>() &&
                   clusterOf.lookup_or(insert.getDest().getDefiningOp(), ~0u) == index;
  bool freely = assembles || (cluster.small && isSmall(op));
  if ((!common && !freely) || closesCycle(cluster.members, op))
    return false;
  // If `op` joins only because it has few elements, `common` is 0, and the cluster has no common
  // loops.
  cluster.rows.resize(common);
  cluster.small &= isSmall(op);
  cluster.size = size;
  if (common && kindOf(op) == ClusterKind::Row)
    cluster.kind = ClusterKind::Row;
  cluster.members.push_back(op);
  clusterOf[op] = index;
  return true;
}

/// Merges cluster \p other into cluster \p index, which contains \p op. Cluster \p other must also
/// produce an operand of \p op.
void ClusterBuilder::merge(Operation *op, unsigned index, unsigned other) {
  OpCluster &into = clusters[index], &from = clusters[other];
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto inRows = [](const OpCluster &c) {
    return c.kind == ClusterKind::Map || c.kind == ClusterKind::Row;
  };
  if (!generic || !inRows(into) || !inRows(from) ||
      position[op] - position[from.members.back()] > window || into.size + from.size > maxOps)
    return;
  unsigned common = commonRows(generic, from);
  // A cluster of maps can use fewer of its loops. A row kernel cannot change its number of loops.
  if (from.kind == ClusterKind::Map)
    common = std::min<unsigned>(common, into.rows.size());
  bool agree = common && common <= into.rows.size() &&
               (into.kind == ClusterKind::Map || common == into.rows.size()) &&
               ArrayRef(into.rows).take_front(common) == ArrayRef(from.rows).take_front(common);
  SmallVector<Operation *> both(from.members);
  llvm::append_range(both, into.members);
  if (!agree || closesCycle(both, op))
    return;
  llvm::sort(both, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  into.rows.resize(common);
  into.small &= from.small;
  into.size += from.size;
  if (from.kind == ClusterKind::Row)
    into.kind = ClusterKind::Row;
  into.members = std::move(both);
  for (Operation *member : from.members)
    clusterOf[member] = index;
  from.members.clear();
}

/// Returns true if a kernel of \p members and \p op would depend on itself, because it would read a
/// value that another kernel computes from the results of this kernel.
bool ClusterBuilder::closesCycle(ArrayRef<Operation *> members, Operation *op) {
  llvm::SmallPtrSet<Operation *, 16> inside(members.begin(), members.end()), seen;
  inside.insert(op);
  unsigned first = position[op];
  for (Operation *member : members)
    first = std::min(first, position[member]);
  // A value that is computed before all members can depend on them only by other ops of its kernel.
  auto relevant = [&](Operation *def) {
    if (!def || def->getBlock() != &block)
      return false;
    auto it = clusterOf.find(def);
    Operation *last = it == clusterOf.end() ? def : clusters[it->second].members.back();
    return position[last] >= first;
  };

  // Collect the values that these ops read from other kernels, directly or through auxiliary ops.
  SmallVector<Value> worklist;
  for (Operation *member : inside)
    llvm::append_range(worklist, readValues(member));
  SmallVector<Operation *> outside;
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!relevant(def) || inside.contains(def) || !seen.insert(def).second)
      continue;
    if (!clusterOf.contains(def) && auxiliary.contains(def))
      llvm::append_range(worklist, readValues(def));
    else
      outside.push_back(def);
  }
  // Check whether any of these values depends on one of the ops of the new kernel.
  seen.clear();
  while (!outside.empty()) {
    Operation *def = outside.pop_back_val();
    if (inside.contains(def))
      return true;
    if (!seen.insert(def).second)
      continue;
    ArrayRef<Operation *> group = def;
    if (auto it = clusterOf.find(def); it != clusterOf.end())
      group = clusters[it->second].members;
    for (Operation *other : group) {
      seen.insert(other);
      for (Value v : readValues(other))
        if (relevant(v.getDefiningOp()))
          outside.push_back(v.getDefiningOp());
    }
  }
  return false;
}
