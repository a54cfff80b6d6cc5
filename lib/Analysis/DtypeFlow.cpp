//===- DtypeFlow.cpp - Types in which a step computes -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   model  ->  cotangents  -> gradient: convert, reduce, add ->  norm   -> step block
//          ->  loss: reduce, add                             ->            step block
//                                  gradient, factors  ->  optimizer     -> state
//
// 1. Walk back from each result that updates state. The op that computes the result is in the part
//    `optimizer`. The first tensor operand of this op is the gradient. The scalar operands of this
//    op are factors.
// 2. Walk back from each gradient, through loops, to the reduce_scatter that computes it.
// 3. Walk back from the op that updates the step block. The first operand of this op leads to the
//    reductions that compute the loss. The other operands lead to the ops that compute the norm of
//    the gradients.
// 4. All ops that steps 1 to 3 do not visit belong to the part `model`.
// 5. Make rows that list the types of all reductions, products, attention ops, conversions and
//    collectives.
// 6. Append rows for those values of the forward that remain f32 although --param-dtype is
//    narrower. Each row states the reason.
//
// The time is O(ops).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/DtypeFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fsdp;

StringRef fsdp::stringifyStepPart(StepPart part) {
  static constexpr StringLiteral names[] = {"model", "loss", "gradient", "norm", "optimizer"};
  return names[static_cast<unsigned>(part)];
}

bool fsdp::holdsAll(FloatType outer, FloatType inner) {
  const llvm::fltSemantics &o = outer.getFloatSemantics(), &i = inner.getFloatSemantics();
  return llvm::APFloat::semanticsPrecision(o) >= llvm::APFloat::semanticsPrecision(i) &&
         llvm::APFloat::semanticsMaxExponent(o) >= llvm::APFloat::semanticsMaxExponent(i);
}

static bool isScalar(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getRank() == 0;
}

StepParts::StepParts(func::FuncOp program) {
  Operation *ret = program.getBody().front().getTerminator();
  Value block;
  for (OpOperand &result : ret->getOpOperands()) {
    auto updates = program.getResultAttrOfType<IntegerAttr>(result.getOperandNumber(),
                                                            FSDPDialect::updatesAttr);
    if (!updates)
      continue;
    unsigned index = updates.getInt();
    if (auto unit = program.getArgAttrOfType<FlatSymbolRefAttr>(index, FSDPDialect::unitAttr))
      followState(result.get(), unit);
    else if (program.getArgAttr(index, FSDPDialect::blockAttr))
      block = result.get();
  }
  auto update = block ? block.getDefiningOp<linalg::GenericOp>() : linalg::GenericOp();
  if (!update || !mark(update, StepPart::norm))
    return;
  for (auto [i, in] : llvm::enumerate(update.getDpsInputs()))
    i == 0 ? followLoss(in) : followNorm(in);
}

/// Assigns `op` to `part`. Returns false if `op` already belongs to a part.
bool StepParts::mark(Operation *op, StepPart part) { return parts.try_emplace(op, part).second; }

/// Walks back from the new state of a unit to the op that computes the update. Assigns all ops on
/// the way, such as the gather of the pieces of the state, to the part `optimizer`.
void StepParts::followState(Value v, FlatSymbolRefAttr unit) {
  Operation *def = v.getDefiningOp();
  if (!def || !mark(def, StepPart::optimizer))
    return;
  auto update = dyn_cast<linalg::GenericOp>(def);
  if (!update) {
    for (Value operand : def->getOperands())
      followState(operand, unit);
    return;
  }
  bool isFirst = true;
  for (Value in : update.getDpsInputs()) {
    if (isScalar(in)) {
      followFactor(in);
    } else if (isFirst) {
      followGradient(in, unit);
      isFirst = false;
    }
  }
}

/// Walks back from a scalar factor of an update, such as the learning rate or a bias correction, to
/// the step block.
void StepParts::followFactor(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def || !isScalar(v) || !mark(def, StepPart::optimizer))
    return;
  for (Value operand : def->getOperands())
    followFactor(operand);
}

void StepParts::followGradient(Value v, FlatSymbolRefAttr unit) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return;
  if (auto loop = dyn_cast<scf::ForOp>(def)) {
    mark(loop, StepPart::gradient);
    return followGradient(loop.getYieldedValues()[cast<OpResult>(v).getResultNumber()], unit);
  }
  if (isa<tensor::EmptyOp, linalg::FillOp>(def) || !mark(def, StepPart::gradient))
    return;
  units[def] = unit;
  // Stop at a collective. If the op that computes the operand of the collective only converts the
  // type, this op belongs to the part `gradient`. Any other op that computes the operand belongs to
  // the model.
  if (isa<ReduceScatterOp, AllGatherOp>(def)) {
    for (Value crossing : def->getOperands()) {
      while (isa_and_nonnull<tensor::CollapseShapeOp>(crossing.getDefiningOp()))
        crossing = crossing.getDefiningOp()->getOperand(0);
      if (auto map = crossing.getDefiningOp<linalg::GenericOp>();
          map && map.getNumDpsInputs() == 1 &&
          isa_and_nonnull<arith::TruncFOp, arith::ExtFOp>(
              map.getBody()->getTerminator()->getOperand(0).getDefiningOp()) &&
          map.getBody()->getOperations().size() == 2) {
        mark(map, StepPart::gradient);
        units[map] = unit;
      }
    }
    return;
  }
  for (Value operand : def->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        type && isa<FloatType>(type.getElementType()) && !isScalar(operand))
      followGradient(operand, unit);
}

void StepParts::followNorm(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def || isa<tensor::EmptyOp, linalg::FillOp>(def) || !mark(def, StepPart::norm))
    return;
  // Skip integer operands. Integer operands are results of checks of lookups, and these checks
  // belong to the model.
  for (Value operand : def->getOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand.getType())))
      followNorm(operand);
}

/// Walks back from the loss to the reductions that compute it. The ops that compute the operands of
/// these reductions belong to the model.
void StepParts::followLoss(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def)
    return;
  if (auto loop = dyn_cast<scf::ForOp>(def))
    return followLoss(loop.getYieldedValues()[cast<OpResult>(v).getResultNumber()]);
  auto generic = dyn_cast<linalg::GenericOp>(def);
  bool reduces = isa<CrossEntropyOp>(def) || (generic && generic.getNumReductionLoops() != 0);
  if (isa<tensor::EmptyOp, linalg::FillOp>(def) || (!isScalar(v) && !reduces) ||
      !mark(def, StepPart::loss))
    return;
  for (Value operand : def->getOperands())
    followLoss(operand);
}

namespace {
/// Collects the rows of the table. The rows are in the program order of their first ops.
class RowCollector {
public:
  RowCollector(func::FuncOp program, bool roundsToTF32)
      : parts(program), roundsToTF32(roundsToTF32) {
    addStates(program);
    program.walk([&](Operation *op) {
      if (!isa<linalg::LinalgOp>(op->getParentOp()))
        visit(op);
    });
  }
  SmallVector<DtypeRow> rows;

private:
  void addStates(func::FuncOp program);
  void visit(Operation *op);
  void visitGeneric(linalg::GenericOp op);
  void visitAttention(Operation *op);
  void add(StepPart part, StringRef what, const std::string &types, Type written, int64_t turns);

  std::string printFactor(Type type) const;

  StepParts parts;
  bool roundsToTF32;
  /// Index of each table row. The key consists of the part, the kind of the ops, and the types.
  llvm::StringMap<unsigned> numbers;
};
} // namespace

/// The attribute `fsdp.kept_wide` lists reasons why values of the model stay f32. Appends a row for
/// each of these reasons.
static void addKeptWide(ModuleOp module, SmallVectorImpl<DtypeRow> &rows) {
  auto kept = module->getAttrOfType<DictionaryAttr>(FSDPDialect::keptWideAttr);
  if (!kept)
    return;
  for (NamedAttribute reason : kept) {
    ArrayRef<int64_t> values = cast<DenseI64ArrayAttr>(reason.getValue()).asArrayRef();
    rows.push_back({StepPart::model, "stays f32", reason.getName().str(), values[0], values[1],
                    values[1] * 4});
  }
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

static std::string arrow(Type from, Type to) {
  return from == to ? print(from) : print(from) + " -> " + print(to);
}

static bool isFloat(Value v) { return isa<FloatType>(getElementTypeOrSelf(v.getType())); }

/// Returns how often a step executes the op.
static int64_t countTurns(Operation *op) {
  int64_t turns = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (std::optional<APInt> count = loop.getStaticTripCount())
      turns *= count->getSExtValue();
  return turns;
}

void RowCollector::add(StepPart part, StringRef what, const std::string &types, Type written,
                       int64_t turns) {
  std::string key = (stringifyStepPart(part) + "|" + what + "|" + types).str();
  auto [it, isNew] = numbers.try_emplace(key, rows.size());
  if (isNew)
    rows.push_back({part, what.str(), types});
  DtypeRow &row = rows[it->second];
  auto tensor = dyn_cast<RankedTensorType>(written);
  int64_t elements = tensor ? tensor.getNumElements() : 1;
  row.count += turns;
  row.elements += turns * elements;
  row.bytes +=
      turns * llvm::divideCeil(elements * getElementTypeOrSelf(written).getIntOrFloatBitWidth(), 8);
}

void RowCollector::addStates(func::FuncOp program) {
  for (BlockArgument arg : program.getArguments())
    if (auto state =
            program.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::stateAttr))
      add(StepPart::optimizer, (state.getValue() + " (state)").str(), print(arg.getType()),
          arg.getType(), 1);
}

/// Returns the op extf or truncf that computes `yielded`, possibly through a select after the
/// conversion. Returns null if no conversion computes `yielded`.
static Operation *getConversion(Value yielded) {
  Operation *op = yielded.getDefiningOp();
  if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
    op = choice.getTrueValue().getDefiningOp();
  return isa_and_nonnull<arith::TruncFOp, arith::ExtFOp>(op) ? op : nullptr;
}

/// Returns true if the conversion rounds stochastically, that is, if noise is added to the bits of
/// its operand.
static bool isStochastic(Operation *conversion) {
  auto kept = conversion->getOperand(0).getDefiningOp<arith::SelectOp>();
  return kept && kept.getFalseValue().getDefiningOp<arith::BitcastOp>();
}

void RowCollector::visitGeneric(linalg::GenericOp op) {
  int64_t turns = countTurns(op);
  Block &body = *op.getBody();
  StepPart part = parts[op];
  if (op.getNumReductionLoops() != 0) {
    // getDpsInputs returns a temporary object, so keep this object as long as `in` points into it.
    SmallVector<Value> inputs = op.getDpsInputs();
    auto in = llvm::find_if(inputs, isFloat);
    if (in == inputs.end())
      return;
    for (Value result : op->getResults())
      if (isFloat(result))
        add(part, "reduction",
            arrow(getElementTypeOrSelf(in->getType()), getElementTypeOrSelf(result.getType())),
            result.getType(), turns);
    return;
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Operation *last = getConversion(body.getTerminator()->getOperand(i));
    if (!last)
      continue;
    bool pure = isa<BlockArgument>(last->getOperand(0));
    if (pure || isa<arith::TruncFOp>(last))
      add(part,
          pure                 ? "conversion"
          : isStochastic(last) ? "stochastic rounding"
                               : "rounding",
          arrow(last->getOperand(0).getType(), last->getResult(0).getType()), result.getType(),
          turns);
  }
}

std::string RowCollector::printFactor(Type type) const {
  return roundsToTF32 && getElementTypeOrSelf(type).isF32() ? "tf32" : print(type);
}

/// Adds the row of attention or of its gradients: `q, k, v -> o`, or `cotangent -> dq, dk, dv`.
void RowCollector::visitAttention(Operation *op) {
  auto grad = dyn_cast<AttentionGradOp>(op);
  Type from = grad ? grad.getDout().getType() : op->getOperand(0).getType();
  Value to = op->getResult(0);
  Type sums = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isF64()
                  ? Builder(op).getF64Type()
                  : Type(Builder(op).getF32Type());
  add(parts[op], grad ? "attention_grad" : "attention",
      printFactor(from) + " -> " + print(sums) + " -> " + print(to.getType()), to.getType(),
      countTurns(op));
}

void RowCollector::visit(Operation *op) {
  int64_t turns = countTurns(op);
  auto element = [](Value v) { return getElementTypeOrSelf(v.getType()); };
  StepPart part = parts[op];
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return visitGeneric(generic);
  if (auto product = dyn_cast<linalg::ContractOp>(op)) {
    Value l = product.getDpsInputs()[0], r = product.getDpsInputs()[1], out = product->getResult(0);
    std::string types =
        printFactor(l.getType()) + " x " + printFactor(r.getType()) + " -> " + print(out.getType());
    return add(part, "product", types, out.getType(), turns);
  }
  if (isa<AttentionOp, AttentionGradOp>(op))
    return visitAttention(op);
  if (isa<linalg::SoftmaxOp, ScatterAddRowsOp, CrossEntropyOp>(op)) {
    // The kernel of the op computes in f32 if the operand is narrower than f32. Otherwise it
    // computes in the operand's type.
    Type from = element(op->getOperand(0)),
         wide = from.getIntOrFloatBitWidth() < 32 ? Builder(op).getF32Type() : from;
    return add(part, op->getName().stripDialect(), arrow(from, wide), op->getResult(0).getType(),
               turns);
  }
  if (auto unshard = dyn_cast<UnshardOp>(op)) {
    for (Value full : unshard.getResults())
      add(part, "gather", arrow(element(unshard.getShard()), element(full)), full.getType(), turns);
    return;
  }
  if (auto reduce = dyn_cast<ReduceScatterOp>(op)) {
    for (Value grad : reduce.getGrads())
      add(part, "reduce_scatter", print(grad.getType()), grad.getType(), turns);
    return;
  }
  if (isa<AllReduceOp, AllGatherOp, FlatReduceScatterOp, BroadcastOp, ShiftOp>(op))
    return add(part, op->getName().stripDialect(), print(op->getOperand(0).getType()),
               op->getOperand(0).getType(), turns);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (Value sum : loop.getRegionIterArgs())
      if (isFloat(sum))
        add(isScalar(sum) ? StepPart::loss : StepPart::gradient, "accumulation",
            print(sum.getType()), sum.getType(), turns);
}

SmallVector<DtypeRow> fsdp::measureDtypes(ModuleOp updated, bool roundsToTF32) {
  for (auto func : updated.getOps<func::FuncOp>()) {
    auto program = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!program || program.getValue() != "step" || func.isExternal())
      continue;
    SmallVector<DtypeRow> rows = RowCollector(func, roundsToTF32).rows, sorted;
    addKeptWide(updated, rows);
    for (StepPart part :
         {StepPart::model, StepPart::loss, StepPart::gradient, StepPart::norm, StepPart::optimizer})
      llvm::copy_if(rows, std::back_inserter(sorted),
                    [&](const DtypeRow &row) { return row.part == part; });
    return sorted;
  }
  return {};
}

void fsdp::writeDtypes(ArrayRef<DtypeRow> rows, bool all, raw_ostream &os) {
  os << "\nTypes in which a step of one rank computes\n";
  for (const DtypeRow &row : rows)
    if (all || row.part != StepPart::model)
      os << "  " << llvm::left_justify(stringifyStepPart(row.part), 11)
         << llvm::left_justify(row.what, 24) << llvm::left_justify(row.types, 22)
         << llvm::format("%8lld x %16lld B", static_cast<long long>(row.count),
                         static_cast<long long>(row.bytes))
         << "\n";
}

void fsdp::writeDtypes(ArrayRef<DtypeRow> rows, llvm::json::OStream &json) {
  json.attributeArray("dtypes", [&] {
    for (const DtypeRow &row : rows)
      json.object([&] {
        json.attribute("part", stringifyStepPart(row.part));
        json.attribute("what", row.what);
        json.attribute("types", row.types);
        json.attribute("count", row.count);
        json.attribute("elements", row.elements);
        json.attribute("bytes", row.bytes);
      });
  });
}
