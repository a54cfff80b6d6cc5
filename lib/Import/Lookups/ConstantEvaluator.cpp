//===- ConstantEvaluator.cpp - Values that no input changes -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Interprets constants, generics, views, slices and concatenations. The body of an op is translated
// once into a list of steps, which run at each point of the op's loops. Sums of floats are not
// computed, because their order depends on the kernel.
//
//===----------------------------------------------------------------------===//

#include "Lookups/ConstantEvaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (ShapedType::isDynamic(extent) || llvm::MulOverflow(count, extent, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

/// Returns the row-major index of the element `at`, or nothing if a coordinate is outside the
/// shape.
static std::optional<int64_t> offsetOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> at) {
  int64_t offset = 0;
  for (auto [extent, index] : llvm::zip_equal(shape, at)) {
    if (index < 0 || index >= extent)
      return std::nullopt;
    offset = offset * extent + index;
  }
  return offset;
}

/// Advances `point` in row-major order. Returns false after the last point.
static bool advance(MutableArrayRef<int64_t> point, ArrayRef<int64_t> shape) {
  for (size_t i = point.size(); i-- > 0;) {
    if (++point[i] < shape[i])
      return true;
    point[i] = 0;
  }
  return false;
}

/// Copies all elements of `part` to a block of `whole` if `toWhole` is set, and else from the block
/// to `part`. The block begins at `offsets` and has the strides `strides`.
static void copyBlock(ConstantTable &whole, ConstantTable &part, ArrayRef<int64_t> offsets,
                      ArrayRef<int64_t> strides, bool toWhole) {
  if (part.elements.empty())
    return;
  SmallVector<int64_t> point(part.shape.size(), 0), at(point.size());
  size_t next = 0;
  do {
    for (size_t i = 0; i < at.size(); ++i)
      at[i] = offsets[i] + point[i] * (strides.empty() ? 1 : strides[i]);
    Scalar &outer = whole.elements[*offsetOf(whole.shape, at)];
    Scalar &inner = part.elements[next++];
    (toWhole ? outer : inner) = toWhole ? inner : outer;
  } while (advance(point, part.shape));
}

static std::optional<ConstantTable> readConstant(ElementsAttr attr) {
  ConstantTable table{llvm::to_vector(attr.getShapedType().getShape()), {}};
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    auto *blob = resource.getRawHandle().getBlob();
    Type element = attr.getElementType();
    bool isSplat;
    if (!blob || !element.isIntOrFloat() || element.isInteger(1) ||
        !DenseElementsAttr::isValidRawBuffer(resource.getType(), blob->getData(), isSplat))
      return std::nullopt;
    dense = DenseElementsAttr::getFromRawBuffer(resource.getType(), blob->getData());
  }
  if (!dense)
    return std::nullopt;
  int64_t count = countOf(table.shape);
  if (dense.isSplat() && count > 0) {
    std::optional<Scalar> value = readScalar(dense.getSplatValue<Attribute>());
    if (!value)
      return std::nullopt;
    table.elements.assign(count, *value);
    return table;
  }
  table.elements.reserve(count);
  if (auto integers = dyn_cast<DenseIntElementsAttr>(dense)) {
    bool isBit = attr.getElementType().isInteger(1);
    for (const APInt &value : integers.getValues<APInt>())
      table.elements.push_back(
          Scalar::of(isBit ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue()));
    return table;
  }
  for (Attribute value : dense.getValues<Attribute>()) {
    std::optional<Scalar> number = readScalar(value);
    if (!number)
      return std::nullopt;
    table.elements.push_back(*number);
  }
  return table;
}

struct ConstantEvaluator::Program {
  struct Input {
    unsigned slot;
    const ConstantTable *table;
    AffineMap map;
  };
  struct Step {
    Operation *op;
    unsigned slot;
    SmallVector<unsigned, 4> operands;
    const ConstantTable *table; ///< tensor that a step for a tensor.extract reads
  };
  llvm::DenseMap<Value, unsigned> slots;
  std::vector<Scalar> values;
  SmallVector<Input> inputs;
  SmallVector<std::pair<unsigned, unsigned>> indices; ///< slot and loop of each linalg.index op
  SmallVector<Step> steps;

  unsigned add(Value value, Scalar initial = {}) {
    slots[value] = values.size();
    values.push_back(initial);
    return values.size() - 1;
  }
};

/// Appends the steps that compute `value`, which is in the body of `op` or is a scalar from
/// outside. Returns false if an op is not supported.
bool ConstantEvaluator::write(Program &program, linalg::LinalgOp op, Value value) {
  if (program.slots.contains(value))
    return true;
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant))) {
    std::optional<Scalar> number = readScalar(constant);
    if (number)
      program.add(value, *number);
    return number.has_value();
  }
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (arg.getOwner() != op.getBlock())
      return false;
    OpOperand &operand = op->getOpOperand(arg.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType())) {
      if (!write(program, op, operand.get()))
        return false;
      program.slots[value] = program.slots[operand.get()];
      return true;
    }
    const ConstantTable *table = get(operand.get());
    if (table)
      program.inputs.push_back({program.add(value), table, op.getMatchingIndexingMap(&operand)});
    return table;
  }
  Operation *source = value.getDefiningOp();
  if (source->getBlock() != op.getBlock())
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(source)) {
    program.indices.push_back({program.add(value), static_cast<unsigned>(index.getDim())});
    return true;
  }
  auto lookup = dyn_cast<tensor::ExtractOp>(source);
  const ConstantTable *table = lookup ? get(lookup.getTensor()) : nullptr;
  if (lookup ? !table : !isKnownScalarOp(source))
    return false;
  Program::Step step{source, 0, {}, table};
  for (Value operand : source->getOperands().drop_front(lookup ? 1 : 0)) {
    if (!write(program, op, operand))
      return false;
    step.operands.push_back(program.slots[operand]);
  }
  step.slot = program.add(value);
  program.steps.push_back(step);
  return true;
}

void ConstantEvaluator::run(Program &program, ArrayRef<int64_t> point) {
  SmallVector<int64_t> at;
  auto read = [&](const ConstantTable &table) {
    std::optional<int64_t> offset = offsetOf(table.shape, at);
    return offset ? table.elements[*offset] : Scalar::poison();
  };
  for (auto [slot, loop] : program.indices)
    program.values[slot] = Scalar::of(point[loop]);
  for (const Program::Input &input : program.inputs) {
    at = input.map.compose(point);
    program.values[input.slot] = read(*input.table);
  }
  SmallVector<Scalar, 4> operands;
  for (const Program::Step &step : program.steps) {
    operands.clear();
    for (unsigned slot : step.operands)
      operands.push_back(program.values[slot]);
    if (!step.table) {
      program.values[step.slot] = evaluateScalar(step.op, operands);
      continue;
    }
    at.clear();
    for (const Scalar &index : operands)
      at.push_back(index.undefined ? -1 : index.integer);
    program.values[step.slot] = read(*step.table);
  }
}

std::optional<ConstantValue> ConstantEvaluator::get(linalg::LinalgOp op, Value value) {
  Program program;
  if (!write(program, op, value))
    return std::nullopt;
  llvm::SmallBitVector used(op.getNumLoops());
  for (auto [slot, loop] : program.indices)
    used.set(loop);
  for (const Program::Input &input : program.inputs)
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (input.map.isFunctionOfDim(loop))
        used.set(loop);
  ConstantValue result;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (unsigned loop : used.set_bits()) {
    result.loops.push_back(loop);
    result.table.shape.push_back(extents[loop]);
  }
  int64_t count = countOf(result.table.shape);
  if (count <= 0 || count > maxElements)
    return std::nullopt;
  result.table.elements.reserve(count);
  SmallVector<int64_t> point(op.getNumLoops(), 0), at(result.loops.size(), 0);
  do {
    for (auto [loop, index] : llvm::zip_equal(result.loops, at))
      point[loop] = index;
    run(program, point);
    const Scalar &element = program.values[program.slots[value]];
    if (element.undefined)
      return std::nullopt;
    result.table.elements.push_back(element);
  } while (advance(at, result.table.shape));
  return result;
}

/// Returns whether the result of a reduction depends on the order of its elements.
static bool dependsOnOrder(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0)
    return false;
  return llvm::any_of(op.getBlock()->getTerminator()->getOperands(), [](Value yielded) {
    Operation *source = yielded.getDefiningOp();
    return isa<FloatType>(yielded.getType()) && source &&
           !isa<arith::MaximumFOp, arith::MinimumFOp, arith::SelectOp>(source);
  });
}

/// Computes all results of a structured op, because the reduction of one result may read another
/// result. Returns result number `result`.
std::optional<ConstantTable> ConstantEvaluator::computeStructured(linalg::LinalgOp op,
                                                                  unsigned result) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t points = countOf(extents);
  if (!op.hasPureTensorSemantics() || points <= 0 || points > maxPoints || dependsOnOrder(op))
    return std::nullopt;
  Program program;
  SmallVector<ConstantTable> outputs;
  SmallVector<unsigned> accumulators, results;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    const ConstantTable *table = get(init.get());
    if (!table)
      return std::nullopt;
    outputs.push_back(*table);
    accumulators.push_back(program.add(op.getMatchingBlockArgument(&init)));
  }
  for (Value yielded : op.getBlock()->getTerminator()->getOperands()) {
    if (!write(program, op, yielded))
      return std::nullopt;
    results.push_back(program.slots[yielded]);
  }
  SmallVector<AffineMap> maps;
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  SmallVector<int64_t> point(extents.size(), 0), offsets(outputs.size());
  do {
    for (auto [i, table] : llvm::enumerate(outputs)) {
      offsets[i] = *offsetOf(table.shape, maps[i].compose(point));
      program.values[accumulators[i]] = table.elements[offsets[i]];
    }
    run(program, point);
    for (auto [i, table] : llvm::enumerate(outputs))
      table.elements[offsets[i]] = program.values[results[i]];
  } while (advance(point, extents));
  return std::move(outputs[result]);
}

std::optional<ConstantTable> ConstantEvaluator::computeSlice(tensor::ExtractSliceOp op) {
  const ConstantTable *source = get(op.getSource());
  bool isStatic = llvm::none_of(op.getStaticOffsets(), ShapedType::isDynamic) &&
                  llvm::none_of(op.getStaticStrides(), ShapedType::isDynamic) &&
                  llvm::none_of(op.getStaticSizes(), ShapedType::isDynamic);
  if (!source || !isStatic)
    return std::nullopt;
  ConstantTable whole = *source, part{llvm::to_vector(op.getStaticSizes()), {}};
  part.elements.resize(countOf(part.shape));
  copyBlock(whole, part, op.getStaticOffsets(), op.getStaticStrides(), /*toWhole=*/false);
  // A slice may drop dimensions of size 1.
  part.shape = llvm::to_vector(op.getType().getShape());
  return part;
}

std::optional<ConstantTable> ConstantEvaluator::computeConcat(tensor::ConcatOp op) {
  ConstantTable whole{llvm::to_vector(op.getResultType().getShape()), {}};
  whole.elements.resize(countOf(whole.shape));
  SmallVector<int64_t> offsets(whole.shape.size(), 0);
  for (Value input : op.getInputs()) {
    const ConstantTable *table = get(input);
    if (!table)
      return std::nullopt;
    ConstantTable part = *table;
    copyBlock(whole, part, offsets, {}, /*toWhole=*/true);
    offsets[op.getDim()] += part.shape[op.getDim()];
  }
  return whole;
}

std::optional<ConstantTable> ConstantEvaluator::compute(OpResult tensor) {
  auto shape = llvm::to_vector(cast<RankedTensorType>(tensor.getType()).getShape());
  auto reshaped = [&](Value source) -> std::optional<ConstantTable> {
    const ConstantTable *table = get(source);
    return table ? std::optional<ConstantTable>({shape, table->elements}) : std::nullopt;
  };
  using Result = std::optional<ConstantTable>;
  return llvm::TypeSwitch<Operation *, Result>(tensor.getOwner())
      .Case([&](arith::ConstantOp op) -> Result {
        auto attr = dyn_cast<ElementsAttr>(op.getValue());
        return attr ? readConstant(attr) : std::nullopt;
      })
      .Case([&](tensor::EmptyOp) -> Result {
        return ConstantTable{shape, std::vector<Scalar>(countOf(shape), Scalar::poison())};
      })
      .Case([&](linalg::LinalgOp op) { return computeStructured(op, tensor.getResultNumber()); })
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(
          [&](Operation *op) { return reshaped(op->getOperand(0)); })
      .Case([&](tensor::ExtractSliceOp op) { return computeSlice(op); })
      .Case([&](tensor::ConcatOp op) { return computeConcat(op); })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

const ConstantTable *ConstantEvaluator::get(Value tensor) {
  auto [it, fresh] = known.try_emplace(tensor);
  if (!fresh)
    return it->second.get();
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  auto result = dyn_cast<OpResult>(tensor);
  if (!result || !type || countOf(type.getShape()) > maxElements)
    return nullptr;
  std::optional<ConstantTable> table = compute(result);
  if (!table)
    return nullptr;
  return (known[tensor] = std::make_unique<ConstantTable>(std::move(*table))).get();
}
