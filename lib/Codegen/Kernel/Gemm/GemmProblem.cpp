//===- GemmProblem.cpp - Reads contraction kernels --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Each loop of the contraction becomes a digit of the index space (see GemmProblem.h). The role
//     of a digit is batch (in both inputs and the result), m (in lhs and the result), n (in rhs and
//     the result) or k (not in the result).
//  2. Visit the ops after the contraction. A reshape splits digits where necessary. The two parts
//     of a split digit become its children in a tree, so that earlier lists, which contain the
//     split digit, stay valid. Elementwise ops are recorded, and kernels with other ops are
//     refused. Each dimension of a tensor has a list of digits.
//  3. When all splits are known, convert strides per dimension to strides per digit.
//  4. Remove digits of size 1. Merge two neighbouring digits of a role if a single stride describes
//     both digits in every operand. Add a digit of size 1 to roles without digits.
//
// Takes time linear in the size of the kernel.
//
//===----------------------------------------------------------------------===//

#include "GemmProblem.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/IR/TensorSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

bool Operand::sameAs(const Operand &other) const {
  return access.binding >= 0 && access.binding == other.access.binding &&
         access.offset == other.access.offset && access.maps.empty() && other.access.maps.empty() &&
         strides == other.strides;
}

void Problem::forEachStrides(function_ref<void(SmallVector<int64_t> &)> fn) {
  for (Operand *operand : {&lhs, &rhs, &init})
    fn(operand->strides);
  for (Operand &load : loads)
    fn(load.strides);
  for (StoreStep &store : stores)
    fn(store.dest.strides);
  for (MapStep &map : maps)
    for (SmallVector<int64_t> &strides : map.indexStrides)
      fn(strides);
  if (factorSum) {
    fn(factorSum->init.strides);
    fn(factorSum->dest.strides);
  }
}

SmallVector<int> Problem::digitsOf(Role role) const {
  SmallVector<int> result;
  for (auto [i, digit] : llvm::enumerate(digits))
    if (digit.role == role)
      result.push_back(i);
  return result;
}

namespace {
using DigitList = SmallVector<int>;

/// A list of digits. Each digit can be split into an outer and an inner digit. After a digit was
/// split, its old number denotes both parts together.
class DigitTree {
public:
  int add(int64_t size, Role role) {
    nodes.push_back({size, role, -1, -1});
    return nodes.size() - 1;
  }
  DigitList leaves(ArrayRef<int> list) const {
    DigitList result;
    for (int node : list) {
      if (nodes[node].outer < 0) {
        result.push_back(node);
        continue;
      }
      llvm::append_range(result, leaves({nodes[node].outer, nodes[node].inner}));
    }
    return result;
  }
  Digit digit(int leaf) const { return {nodes[leaf].size, nodes[leaf].role}; }

  /// Divides `list` into one list per element of `sizes`, such that the product of the sizes of the
  /// digits in list i is sizes[i]. Splits digits where necessary. Fails if no splits lead to these
  /// products.
  FailureOr<SmallVector<DigitList>> cut(ArrayRef<int> list, ArrayRef<int64_t> sizes) {
    DigitList rest = leaves(list);
    SmallVector<DigitList> parts(sizes.size());
    for (int part = int(sizes.size()) - 1; part >= 0; --part) {
      int64_t open = sizes[part];
      while (open > 1) {
        if (rest.empty())
          return failure();
        int node = rest.pop_back_val();
        int64_t size = nodes[node].size;
        if (size > open && size % open == 0) {
          Role role = nodes[node].role;
          int outer = add(size / open, role), inner = add(open, role);
          nodes[node].outer = outer;
          nodes[node].inner = inner;
          rest.push_back(outer);
          node = inner;
          size = open;
        }
        if (size < 1 || open % size != 0)
          return failure();
        open /= size;
        parts[part].insert(parts[part].begin(), node);
      }
    }
    return parts;
  }

private:
  struct Node {
    int64_t size;
    Role role;
    int outer, inner;
  };
  std::vector<Node> nodes;
};

/// One list of digits for each dimension of a tensor, or for each loop of an op.
using DimDigits = SmallVector<DigitList>;

class Reader {
public:
  explicit Reader(func::FuncOp kernel) : kernel(kernel) {}
  FailureOr<Problem> read();

private:
  LogicalResult readContract();
  LogicalResult readOp(Operation &op);
  LogicalResult readReshape(Value source, Value result, ArrayRef<ReassociationIndices> groups,
                            bool expand);
  LogicalResult readMap(linalg::LinalgOp op);
  LogicalResult readStores(func::ReturnOp op);
  LogicalResult readFactorSum(Value value, Value argument);
  void resolveStrides();

  func::FuncOp kernel;
  Problem problem;
  DigitTree tree;
  SmallVector<int> loopDigits;
  DenseMap<Value, DimDigits> dimsOf;
  /// The stride and the digits of each dimension of a tensor. They are kept until all splits of
  /// digits are known.
  struct Pending {
    SmallVector<int64_t> dimStrides;
    DimDigits dims;
  };
  Pending lhs, rhs, init;
  SmallVector<Pending> loads, stores;
  Pending sumInit, sumDest;
  // Strides of the linalg.index ops, one list per op in problem.maps.
  SmallVector<SmallVector<Pending>> indices;
};
} // namespace

/// Returns the digits of each dimension of a tensor that an op accesses through `map`. `loops`
/// contains the digits of the op's loops.
static DimDigits throughMap(AffineMap map, ArrayRef<DigitList> loops) {
  DimDigits dims;
  for (AffineExpr expr : map.getResults())
    dims.push_back(loops[cast<AffineDimExpr>(expr).getPosition()]);
  return dims;
}

LogicalResult Reader::readContract() {
  linalg::ContractOp op = problem.contract;
  auto maps = cast<linalg::LinalgOp>(op.getOperation()).getIndexingMapsArray();
  if (!llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return failure();
  SmallVector<DigitList> loops;
  for (auto [d, size] :
       llvm::enumerate(cast<linalg::LinalgOp>(op.getOperation()).getStaticLoopRanges())) {
    if (ShapedType::isDynamic(size))
      return failure();
    bool inLhs = maps[0].isFunctionOfDim(d), inRhs = maps[1].isFunctionOfDim(d),
         inOut = maps[2].isFunctionOfDim(d);
    Role role = !inOut ? Role::K : inLhs == inRhs ? Role::Batch : inLhs ? Role::M : Role::N;
    loops.push_back({tree.add(size, role)});
    loopDigits.push_back(loops.back().front());
  }
  auto trace = [&](Value value, AffineMap map, Operand &operand, Pending &later) -> LogicalResult {
    FailureOr<Access> access = traceAccess(value);
    if (failed(access))
      return failure();
    operand.access = *access;
    later = {access->dimStrides, throughMap(map, loops)};
    return success();
  };
  Value root = problem.root();
  dimsOf[root] = throughMap(maps[2], loops);
  return success(succeeded(trace(op->getOperand(0), maps[0], problem.lhs, lhs)) &&
                 succeeded(trace(op->getOperand(1), maps[1], problem.rhs, rhs)) &&
                 succeeded(trace(op->getOperand(2), maps[2], problem.init, init)));
}

LogicalResult Reader::readReshape(Value source, Value result, ArrayRef<ReassociationIndices> groups,
                                  bool expand) {
  DimDigits from = dimsOf[source], to;
  if (!expand) {
    for (const ReassociationIndices &group : groups) {
      DigitList list;
      for (int64_t d : group)
        llvm::append_range(list, from[d]);
      to.push_back(list);
    }
  } else {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
    for (auto [d, group] : llvm::enumerate(groups)) {
      SmallVector<int64_t> sizes = llvm::map_to_vector(group, [&](int64_t r) { return shape[r]; });
      FailureOr<SmallVector<DigitList>> parts = tree.cut(from[d], sizes);
      if (failed(parts))
        return failure();
      llvm::append_range(to, *parts);
    }
  }
  dimsOf[result] = to;
  problem.viewOf[result] = problem.key(source);
  return success();
}

LogicalResult Reader::readMap(linalg::LinalgOp op) {
  if (op.getNumParallelLoops() != op.getNumLoops() || !op.hasPureTensorSemantics() ||
      !hasVectorBody(op))
    return failure();
  // The operands that are computed from the contraction determine the digits of this op's loops.
  SmallVector<DigitList> loops(op.getNumLoops());
  llvm::SmallBitVector known(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto computed = dimsOf.find(operand.get());
    if (!map.isProjectedPermutation())
      return failure();
    if (computed == dimsOf.end())
      continue;
    for (auto [d, list] : llvm::enumerate(computed->second)) {
      unsigned loop = map.getDimPosition(d);
      if (known.test(loop) && tree.leaves(loops[loop]) != tree.leaves(list))
        return failure();
      loops[loop] = list;
      known.set(loop);
    }
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [d, size] : llvm::enumerate(ranges))
    if (!known.test(d) && size != 1)
      return failure();
  MapStep step;
  step.op = op;
  for (OpOperand &operand : op->getOpOperands()) {
    step.loadOf.push_back(-1);
    if (dimsOf.contains(operand.get()) || !op.payloadUsesValueFromOperand(&operand))
      continue;
    step.loadOf.back() = problem.loads.size();
    Operand load;
    if (isa<RankedTensorType>(operand.get().getType())) {
      FailureOr<Access> access = traceAccess(operand.get());
      if (failed(access))
        return failure();
      load.access = *access;
    } else if (!matchPattern(operand.get(), m_Constant(&load.access.splat))) {
      return failure();
    } else {
      load.access.elementType = operand.get().getType();
    }
    loads.push_back(
        {load.access.dimStrides, throughMap(op.getMatchingIndexingMap(&operand), loops)});
    problem.loads.push_back(load);
  }
  indices.emplace_back();
  for (const DigitList &loop : loops) {
    step.indexStrides.emplace_back();
    indices.back().push_back({{op.hasIndexSemantics() ? 1 : 0}, {loop}});
  }
  for (OpResult result : op->getResults()) {
    AffineMap map = op.getIndexingMapMatchingResult(result);
    if (!map.isPermutation())
      return failure();
    dimsOf[result] = throughMap(map, loops);
  }
  problem.maps.push_back(step);
  return success();
}

/// If `value` is the result of a tensor.insert_slice into a tensor whose other elements are
/// undefined, returns the tensor.insert_slice. Otherwise returns null.
static tensor::InsertSliceOp getPlacement(Value value) {
  auto insert = value.getDefiningOp<tensor::InsertSliceOp>();
  bool isPlacement = insert && insert.getDest().getDefiningOp<tensor::EmptyOp>() &&
                     insert.hasUnitStride() &&
                     insert.getSourceType().getRank() == insert.getDestType().getRank() &&
                     llvm::none_of(insert.getStaticOffsets(), ShapedType::isDynamic);
  return isPlacement ? insert : nullptr;
}

/// Reads `value`, a result of the kernel that is the sum of a factor of the contraction over k.
LogicalResult Reader::readFactorSum(Value value, Value argument) {
  std::optional<TensorSum> sum = matchTensorSum(value);
  std::optional<unsigned> factor = sum ? findSummedFactor(problem.contract, *sum) : std::nullopt;
  if (!factor || problem.factorSum)
    return failure();
  FailureOr<Access> start = traceAccess(sum->init), dest = traceAccess(argument);
  if (failed(start) || failed(dest) || !start->maps.empty())
    return failure();
  AffineMap map = cast<linalg::LinalgOp>(*problem.contract).getIndexingMapsArray()[*factor];
  DimDigits dims;
  for (int64_t d : sum->kept)
    dims.push_back({loopDigits[map.getDimPosition(d)]});
  problem.factorSum.emplace();
  problem.factorSum->ofLhs = *factor == 0;
  problem.factorSum->init.access = *start;
  problem.factorSum->dest.access = *dest;
  sumInit = {start->dimStrides, dims};
  sumDest = {dest->dimStrides, dims};
  return success();
}

LogicalResult Reader::readStores(func::ReturnOp op) {
  // Result i is written to the argument whose attribute fsdp.out or fsdp.inout is i.
  SmallVector<int> destination(op.getNumOperands(), -1);
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    for (StringRef name : {outAttr, inoutAttr})
      if (auto index = kernel.getArgAttrOfType<IntegerAttr>(i, name))
        if (index.getInt() >= 0 && index.getInt() < int64_t(destination.size()))
          destination[index.getInt()] = i;
  for (auto [result, argument] : llvm::zip_equal(op.getOperands(), destination)) {
    tensor::InsertSliceOp placement = getPlacement(result);
    Value value = placement ? placement.getSource() : Value(result);
    auto dims = dimsOf.find(value);
    if (argument < 0)
      return failure();
    if (dims == dimsOf.end()) {
      if (failed(readFactorSum(value, kernel.getArgument(argument))))
        return failure();
      continue;
    }
    FailureOr<Access> access = traceAccess(kernel.getArgument(argument));
    if (failed(access))
      return failure();
    if (placement)
      for (auto [offset, stride] :
           llvm::zip_equal(placement.getStaticOffsets(), access->dimStrides))
        access->offset += offset * stride;
    StoreStep store;
    store.value = problem.key(value);
    store.dest.access = *access;
    stores.push_back({access->dimStrides, dims->second});
    problem.stores.push_back(store);
  }
  return success();
}

LogicalResult Reader::readOp(Operation &op) {
  bool computed = llvm::any_of(op.getOperands(), [&](Value v) { return dimsOf.contains(v); });
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return readStores(ret);
  if (!computed)
    // This op is not computed from the contraction. traceAccess() visits the op if an operand of a
    // later op depends on it.
    return success();
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return readReshape(expand.getSrc(), expand.getResult(), expand.getReassociationIndices(),
                       /*expand=*/true);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return readReshape(collapse.getSrc(), collapse.getResult(), collapse.getReassociationIndices(),
                       /*expand=*/false);
  if (auto map = dyn_cast<linalg::LinalgOp>(op))
    return readMap(map);
  return success(isa<tensor::InsertSliceOp>(op) && getPlacement(op.getResult(0)));
}

void Reader::resolveStrides() {
  // The digits are in the order of the result's dimensions, followed by the k digits in the order
  // of the loops.
  SmallVector<int> all;
  for (const DigitList &list : dimsOf[problem.root()])
    llvm::append_range(all, tree.leaves(list));
  llvm::append_range(all, llvm::make_filter_range(tree.leaves(loopDigits), [&](int leaf) {
                       return tree.digit(leaf).role == Role::K;
                     }));
  DenseMap<int, int> position;
  for (int leaf : all) {
    position[leaf] = problem.digits.size();
    problem.digits.push_back(tree.digit(leaf));
  }
  auto resolve = [&](const Pending &later, SmallVector<int64_t> &strides) {
    strides.assign(all.size(), 0);
    for (auto [dimStride, list] : llvm::zip_equal(later.dimStrides, later.dims)) {
      int64_t stride = dimStride;
      // The list needs a name: llvm::reverse does not extend the lifetime of a temporary.
      DigitList leaves = tree.leaves(list);
      for (int leaf : llvm::reverse(leaves)) {
        strides[position[leaf]] += stride;
        stride *= tree.digit(leaf).size;
      }
    }
  };
  resolve(lhs, problem.lhs.strides);
  resolve(rhs, problem.rhs.strides);
  resolve(init, problem.init.strides);
  for (auto [later, load] : llvm::zip_equal(loads, problem.loads))
    resolve(later, load.strides);
  for (auto [later, store] : llvm::zip_equal(stores, problem.stores))
    resolve(later, store.dest.strides);
  if (problem.factorSum) {
    resolve(sumInit, problem.factorSum->init.strides);
    resolve(sumDest, problem.factorSum->dest.strides);
  }
  for (auto [later, map] : llvm::zip_equal(indices, problem.maps))
    for (auto [one, strides] : llvm::zip_equal(later, map.indexStrides))
      resolve(one, strides);
}

/// Removes digits of size 1, merges neighbouring digits, and adds a digit to roles without digits.
static void normalise(Problem &problem) {
  auto erase = [&](int i) {
    problem.digits.erase(problem.digits.begin() + i);
    problem.forEachStrides(
        [&](SmallVector<int64_t> &strides) { strides.erase(strides.begin() + i); });
  };
  for (int i = int(problem.digits.size()) - 1; i >= 0; --i)
    if (problem.digits[i].size == 1)
      erase(i);
  for (Role role : {Role::Batch, Role::M, Role::N, Role::K}) {
    SmallVector<int> list = problem.digitsOf(role);
    for (int at = int(list.size()) - 2; at >= 0; --at) {
      int outer = list[at], inner = list[at + 1];
      bool nested = true;
      problem.forEachStrides([&](SmallVector<int64_t> &strides) {
        nested &= strides[outer] == strides[inner] * problem.digits[inner].size;
      });
      if (!nested)
        continue;
      problem.digits[inner].size *= problem.digits[outer].size;
      erase(outer);
      list = problem.digitsOf(role);
    }
    if (list.empty()) {
      problem.digits.push_back({1, role});
      problem.forEachStrides([](SmallVector<int64_t> &strides) { strides.push_back(0); });
    }
  }
}

/// Returns true if two loads have the same value at each element.
static bool haveSameValues(const Operand &lhs, const Operand &rhs) {
  const Access &a = lhs.access, &b = rhs.access;
  return a.binding == b.binding && a.splat == b.splat && a.elementType == b.elementType &&
         a.offset == b.offset && a.maps == b.maps && lhs.strides == rhs.strides;
}

/// Keeps one load of each tensor that several elementwise ops read in the same way.
static void shareLoads(Problem &problem) {
  SmallVector<Operand> loads;
  SmallVector<int> shared; // number of each load among those that remain
  for (Operand &load : problem.loads) {
    auto same =
        llvm::find_if(loads, [&](const Operand &earlier) { return haveSameValues(earlier, load); });
    shared.push_back(same - loads.begin());
    if (same == loads.end())
      loads.push_back(std::move(load));
  }
  problem.loads = std::move(loads);
  for (MapStep &map : problem.maps)
    for (int &load : map.loadOf)
      load = load < 0 ? load : shared[load];
}

FailureOr<Problem> Reader::read() {
  if (!kernel.getBody().hasOneBlock())
    return failure();
  Block &body = kernel.getBody().front();
  for (auto op : body.getOps<linalg::ContractOp>()) {
    if (problem.contract)
      return failure();
    problem.contract = op;
  }
  if (!problem.contract || failed(readContract()))
    return failure();
  for (Operation &op : llvm::make_range(std::next(Block::iterator(problem.contract)), body.end()))
    if (failed(readOp(op)))
      return failure();
  resolveStrides();
  normalise(problem);
  shareLoads(problem);
  return std::move(problem);
}

FailureOr<Problem> gemm::analyse(func::FuncOp kernel) { return Reader(kernel).read(); }
