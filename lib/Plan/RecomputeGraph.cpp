//===- RecomputeGraph.cpp - Calls that the backward can repeat --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   %w = unshard @h.0 site 0         %w = unshard @h.0 site 0
//   %a = call @k(%x, %w)             %a = call @k(%x, %w)
//   %y = call @l(%a, %w)             %y = call @l(%a, %w)
//   ...                         =>   ...                              <- the moment
//   %v = unshard @h.0 site 1         %v = unshard @h.0 site 1
//   %g = call @l.grad(%a, %v)        %b = call @k(%x, %v)
//                                    %g = call @l.grad(%b, %v)
//
// 1. The moment is the op that ends the forward: the op directly before the first op that computes
//    a gradient of a parameter. If no op computes a gradient of a parameter, the moment is the op
//    at which the largest number of bytes of kernel results is alive. The kernel calls up to the
//    moment form the forward. If the logits are computed in chunks, the forward includes the loss
//    of the first chunk.
// 2. A segment consists of consecutive calls: calls that read parameters of one unit, and the calls
//    after them that read no parameters.
// 3. A call is a boundary if another segment reads its result. So is a call of ring attention,
//    because the backward would need the blocks of other ranks.
// 4. To apply a choice of calls, insert a copy of each call that is recomputed. The ops after the
//    moment read the results of the copies instead of the results of the original calls. Copies
//    within a segment also read each other's results. Insert the copies of a segment before the
//    first op that reads one of their results. The copies read the parameters that were gathered
//    again for the backward.
//
// The copies call the same kernels as the original calls, with equal operands. Therefore no bit of
// a result changes. Takes O(uses) time. The pass in SinkToUses.cpp runs later and moves the copies
// towards their uses.
//
//===----------------------------------------------------------------------===//

#include "RecomputeGraph.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/Memory.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t getBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? getStorageBytes(type) : 0;
}

RecomputeGraph::RecomputeGraph(Block &block, Aliasing &aliasing)
    : block(block), aliasing(aliasing) {
  for (Operation &op : block) {
    positions[&op] = ops.size();
    ops.push_back(&op);
  }
  findMoment();
  findCalls();
  findSegments();
  findUses();
}

template <typename Visitor>
void RecomputeGraph::visitUses(Value base, Visitor visit) {
  for (Operation *user : base.getUsers()) {
    Operation *here = block.findAncestorOpInBlock(*user);
    if (!here)
      continue;
    if (aliasing.getViewSource(user) == base && here == user)
      for (Value view : user->getResults())
        visitUses(view, visit);
    else
      visit(here);
  }
}

/// Returns true if `base` is a gradient. Either a reduce-scatter (perhaps over a single rank) reads
/// `base`, or a kernel adds to `base` in place and the sum is a gradient.
bool RecomputeGraph::isGradient(Value base) {
  bool isReduced = false;
  SmallVector<Value> values{base};
  while (!values.empty()) {
    Value value = values.pop_back_val();
    for (Operation *user : value.getUsers()) {
      isReduced |= isa<ReduceScatterOp>(user);
      if (auto call = dyn_cast<KernelCallOp>(user))
        for (OpResult result : call.getResults())
          if (int64_t operand = call.getInplace()[result.getResultNumber()];
              operand >= 0 && call.getInputs()[operand] == value)
            values.push_back(result);
      if (aliasing.getViewSource(user) == value)
        values.append(user->result_begin(), user->result_end());
    }
  }
  return isReduced;
}

void RecomputeGraph::findMoment() {
  SmallVector<int64_t> changes(ops.size() + 1, 0);
  unsigned end = ops.size(); // position of the first op that computes a gradient
  for (Operation *op : ops) {
    auto call = dyn_cast<KernelCallOp>(op);
    for (Value result : call ? ValueRange(call.getResults()) : ValueRange()) {
      unsigned last = positions[op];
      visitUses(result, [&](Operation *user) { last = std::max(last, positions[user]); });
      if (isGradient(result)) {
        end = std::min(end, positions[op]);
        continue;
      }
      changes[positions[op]] += getBytes(result);
      changes[last] -= getBytes(result);
    }
  }
  if (end < ops.size()) {
    moment = end > 0 ? end - 1 : 0;
    return;
  }
  int64_t live = 0, most = 0;
  for (unsigned position = 0; position < ops.size(); ++position) {
    live += changes[position];
    if (live <= most)
      continue;
    most = live;
    moment = position;
  }
}

void RecomputeGraph::findCalls() {
  for (Operation *op : ArrayRef(ops).take_front(std::min<size_t>(moment + 1, ops.size())))
    if (auto call = dyn_cast<KernelCallOp>(op)) {
      numbers[op] = calls.size();
      calls.emplace_back();
      calls.back().op = call;
    }
}

/// Returns the gather whose result `value` views, or null. A gather within a single rank also
/// counts as a view of its source.
static UnshardOp getUnshard(Value value, Aliasing &aliasing) {
  while (Operation *source = value.getDefiningOp()) {
    if (auto unshard = dyn_cast<UnshardOp>(source))
      return unshard;
    value = aliasing.getViewSource(source);
    if (!value)
      break;
  }
  return nullptr;
}

/// Returns the unit whose gathered parameters a call reads. If the call reads several units,
/// returns the one that is gathered last.
StringRef RecomputeGraph::getUnit(KernelCallOp call) {
  UnshardOp last;
  for (Value operand : call.getInputs())
    if (UnshardOp unshard = getUnshard(operand, aliasing))
      if (!last || (unshard->getBlock() == &block && last->getBlock() == &block &&
                    last->isBeforeInBlock(unshard)))
        last = unshard;
  return last ? last.getUnit() : StringRef();
}

/// Returns true if `a` and `b` name the same unit, or if one is the name of a unit and the other is
/// the name of a part of this unit (as `h.0` and `h.0.frozen`).
static bool isPartOf(StringRef a, StringRef b) {
  if (a.size() < b.size())
    std::swap(a, b);
  return a == b || (a.starts_with(b) && a[b.size()] == '.');
}

void RecomputeGraph::findSegments() {
  StringRef current;
  for (Call &call : calls) {
    StringRef unit = getUnit(call.op);
    if (!unit.empty() && (segments == 0 || !isPartOf(unit, current))) {
      current = unit;
      ++segments;
    }
    call.segment = segments ? segments - 1 : 0;
  }
}

void RecomputeGraph::findUses() {
  for (unsigned number = 0; number < calls.size(); ++number) {
    Call &call = calls[number];
    for (Value result : call.op.getResults()) {
      bool isSaved = false;
      visitUses(result, [&](Operation *user) {
        isSaved |= positions[user] > moment;
        auto reader = numbers.find(user);
        // A user that is not a kernel call of the forward is a loop, a collective, or an op after
        // the moment.
        if (reader == numbers.end()) {
          call.isBoundary |= positions[user] <= moment;
          return;
        }
        calls[reader->second].producers.push_back(number);
        call.isBoundary |= calls[reader->second].segment != call.segment;
      });
      call.isSaved |= isSaved;
      call.bytes += getBytes(result);
      call.savedBytes += isSaved ? getBytes(result) : 0;
    }
  }
  // The merges of ring attention read results of calls that read blocks of other ranks.
  auto readsBlock = [&](Call &call) {
    return llvm::any_of(call.op.getInputs(), [&](Value input) {
      return isa_and_nonnull<ShiftOp>(aliasing.getBase(input).getDefiningOp());
    });
  };
  for (Call &call : calls)
    call.isBoundary |= readsBlock(call) || llvm::any_of(call.producers, [&](unsigned producer) {
                         return readsBlock(calls[producer]);
                       });
  for (Call &call : calls) {
    llvm::sort(call.producers);
    call.producers.erase(llvm::unique(call.producers), call.producers.end());
  }
}

llvm::BitVector RecomputeGraph::getNeeded(const llvm::BitVector &recomputed) const {
  llvm::BitVector needed(calls.size());
  for (unsigned number = calls.size(); number-- > 0;) {
    if (!recomputed[number])
      continue;
    needed[number] = needed[number] || calls[number].isSaved;
    if (needed[number])
      for (unsigned producer : calls[number].producers)
        needed[producer] = needed[producer] || recomputed[producer];
  }
  return needed;
}

int64_t RecomputeGraph::getSavedBytes(const llvm::BitVector &recomputed) const {
  llvm::BitVector needed = getNeeded(recomputed), kept(calls.size());
  int64_t bytes = 0;
  auto keep = [&](unsigned number, int64_t size) {
    if (!kept[number])
      bytes += size;
    kept.set(number);
  };
  for (unsigned number = 0; number < calls.size(); ++number) {
    if (calls[number].isSaved && !recomputed[number])
      keep(number, calls[number].savedBytes);
    if (needed[number])
      for (unsigned producer : calls[number].producers)
        if (!recomputed[producer])
          keep(producer, calls[producer].bytes);
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Step 4
//===----------------------------------------------------------------------===//

/// Moves `op` and the ops that define its operands before `place`, unless they are already there.
void RecomputeGraph::moveBefore(Operation *op, Operation *place) {
  if (op->getBlock() != &block || op->isBeforeInBlock(place) || op == place)
    return;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp())
      moveBefore(source, place);
  op->moveBefore(place);
}

/// If another gather gathers the unit of `unshard` again for the backward, returns result number
/// `result` of the other gather. Otherwise returns result number `result` of `unshard`.
Value RecomputeGraph::remapParameter(UnshardOp unshard, unsigned result) {
  UnshardOp again;
  for (UnshardOp other : gathers[unshard.getUnitAttr().getAttr()])
    if (other != unshard && other.getSite() > unshard.getSite() &&
        (!again || other->isBeforeInBlock(again)))
      again = other;
  if (again) {
    moveBefore(again, place);
    return again->getResult(result);
  }
  return unshard->getResult(result);
}

Value RecomputeGraph::remap(Value value, const llvm::BitVector &recomputed) {
  auto known = remapped.find(value);
  if (known != remapped.end())
    return known->second;
  auto result = dyn_cast<OpResult>(value);
  Operation *op = result ? result.getOwner() : nullptr;
  if (!op || op->getBlock() != &block)
    return value;
  unsigned index = result.getResultNumber();
  if (auto unshard = dyn_cast<UnshardOp>(op))
    return remapped[value] = remapParameter(unshard, index);
  auto number = numbers.find(op);
  bool isCopied = number != numbers.end() && recomputed[number->second];
  if (!isCopied && !aliasing.getViewSource(op))
    return value;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(remap(operand, recomputed));
  if (!isCopied && operands == SmallVector<Value>(op->getOperands()))
    return remapped[value] = value;
  OpBuilder builder(place);
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  copy->removeAttr(offloadAttr);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    remapped[from] = to;
  return remapped[value];
}

void RecomputeGraph::apply(const llvm::BitVector &recomputed) {
  // For each segment, find the first op after the moment that reads a result of the segment's
  // recomputed calls. A view of such a result counts as a reader, too.
  auto segmentOf = [&](Value value) -> std::optional<unsigned> {
    Operation *def = aliasing.getBase(value).getDefiningOp();
    auto number = def ? numbers.find(def) : numbers.end();
    if (number == numbers.end() || !recomputed[number->second])
      return std::nullopt;
    return calls[number->second].segment;
  };
  SmallVector<SmallVector<OpOperand *>> reads(segments);
  SmallVector<Operation *> firsts(segments);
  for (Operation *op : ArrayRef(ops).drop_front(moment + 1))
    op->walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands())
        if (std::optional<unsigned> segment = segmentOf(use.get())) {
          reads[*segment].push_back(&use);
          firsts[*segment] = firsts[*segment] ? firsts[*segment] : op;
        }
    });
  for (auto unshard : block.getOps<UnshardOp>())
    gathers[unshard.getUnitAttr().getAttr()].push_back(unshard);
  for (unsigned segment = 0; segment < segments; ++segment) {
    if (!firsts[segment])
      continue;
    place = firsts[segment];
    remapped.clear();
    llvm::BitVector here(calls.size());
    for (unsigned number = 0; number < calls.size(); ++number)
      here[number] = recomputed[number] && calls[number].segment == segment;
    // A view of a result reads the copy as soon as its own source is replaced.
    for (OpOperand *use : reads[segment])
      if (segmentOf(use->get()))
        use->set(remap(use->get(), here));
  }
}
