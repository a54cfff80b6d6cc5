//===- NestKernels.cpp - Kernels as nests of vector loops -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Divides the steps of a kernel into segments. Each segment becomes one or more phases:
//
//   rows      all steps have the same leading dimensions and read other steps only in their own
//             row: one loop over rows that contains all steps (RowNests.cpp); if rows are short,
//             the lanes of a vector hold several rows (ShortRows.cpp)
//   flat      maps of one shape: one loop over all elements (RowNests.cpp)
//   squares   maps whose inputs are contiguous along another dimension than their result
//             (TransposedNests.cpp)
//   columns   a reduction over rows: lanes along columns (ColumnNests.cpp)
//   scatter   lanes along columns, tokens in order (ColumnNests.cpp)
//
//  1. Take as many steps as fit into one segment, and emit the segment's phases. If the emission
//     refuses the segment, try again without the segment's last step.
//  2. Values that a later segment reads are stored in the scratch that the workers share.
//  3. If an argument is updated in place, a read of the argument must be in an earlier stage than
//     the store. Otherwise, it must precede the store to the same element in the same loop body.
//
// Phases are emitted before the kernel. The kernel is erased once all phases exist.
//
//===----------------------------------------------------------------------===//

#include "NestBuilder.h"
#include "fsdp/IR/FSDP.h"

using namespace mlir;
using namespace mlir::fsdp;

NestBuilder::NestBuilder(func::FuncOp kernel, const CpuTarget &target, SmallVector<Step> steps)
    : SegmentDriver(std::move(steps)), kernel(kernel), target(target), builder(kernel.getContext()),
      loc(kernel.getLoc()) {}

NestBuilder::~NestBuilder() {
  for (Phase &phase : phases)
    eraseWithGlobals(phase.function);
}

/// Returns a flat memref of an argument of any rank.
static Value flatten(OpBuilder &b, Location loc, Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  if (type.getRank() == 1)
    return memory;
  if (type.getRank() == 0) {
    auto flat = MemRefType::get({1}, type.getElementType());
    return memref::ExpandShapeOp::create(b, loc, flat, memory, ArrayRef<ReassociationIndices>{});
  }
  ReassociationIndices all = llvm::to_vector<2>(llvm::seq<int64_t>(0, type.getRank()));
  return memref::CollapseShapeOp::create(b, loc, memory, ArrayRef<ReassociationIndices>{all});
}

Value NestBuilder::view(Value bytes, int64_t offset, int64_t elements, Type element) {
  auto type = MemRefType::get({elements}, getStorageType(element));
  return memref::ViewOp::create(builder, loc, type, bytes, index(offset), ValueRange());
}

NestBuilder::Phase NestBuilder::begin(int64_t extent, int64_t tile) {
  Phase phase;
  std::string symbol = kernel.getName().str();
  if (!phases.empty())
    symbol += "." + std::to_string(phases.size());
  else
    // In finish(), the first phase gets the name of the kernel.
    symbol += ".0";
  phase.function = createPhase(builder, kernel, symbol, extent, tile, /*shared=*/true);
  phase.extent = extent;
  phase.tile = tile;
  Block &entry = phase.function.front();
  unsigned bindings = kernel.getNumArguments();
  phase.shared = entry.getArgument(bindings);
  phase.begin = entry.getArgument(bindings + 1);
  phase.end = entry.getArgument(bindings + 2);
  phase.worker = entry.getArgument(bindings + 3);
  phase.state.kernel = kernel;
  phase.state.phase = phase.function;
  builder.setInsertionPointToStart(&entry);
  for (auto [tensor, memory] : llvm::zip(kernel.getArguments(), entry.getArguments()))
    phase.state.stored[tensor] = {flatten(builder, loc, memory), 0};
  for (const Step &step : done) {
    if (!step.destinations.empty())
      phase.state.stored[step.value] = phase.state.stored[step.destinations.front()];
    else if (auto offset = offsets.find(step.value); offset != offsets.end())
      phase.state.stored[step.value] = {view(phase.shared, offset->second,
                                             step.getType().getNumElements(),
                                             step.getType().getElementType()),
                                        0};
  }
  log.begin();
  rowBuffers.clear();
  return phase;
}

/// Returns the memory to which the value of a step is stored: the destinations of the step, or a
/// view of the shared scratch if the step has no destinations.
SmallVector<Value> NestBuilder::getTargets(Phase &phase, const Step &step) {
  SmallVector<Value> targets;
  for (BlockArgument destination : step.destinations)
    targets.push_back(phase.state.stored[destination].memory);
  if (auto offset = offsets.find(step.value); targets.empty() && offset != offsets.end())
    targets.push_back(view(phase.shared, offset->second, step.getType().getNumElements(),
                           step.getType().getElementType()));
  return targets;
}

void NestBuilder::storeAll(Evaluator &at, ArrayRef<Value> targets, Value value, AffineExpr offset) {
  for (Value target : targets)
    at.store(value, target, offset);
}

Value NestBuilder::constantVector(TypedAttr element, int64_t lanes) {
  if (lanes == 1)
    return arith::ConstantOp::create(builder, loc, element);
  auto type = VectorType::get({lanes}, element.getType());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, Attribute(element)));
}

bool NestBuilder::commit(Phase &phase, ArrayRef<Step> segment) {
  if (!phase.state.refusal.empty() || !log.isSafeInPlace()) {
    eraseWithGlobals(phase.function);
    return false;
  }
  log.finish(segment);
  phases.push_back(std::move(phase));
  return true;
}

bool NestBuilder::buildRows(ArrayRef<Step> segment, ArrayRef<int64_t> rows) {
  return buildShortRows(segment, rows) || buildLongRows(segment, rows);
}

bool NestBuilder::buildMaps(ArrayRef<Step> segment) {
  const Step &first = segment.front();
  return buildTransposed(segment) || buildFlat(segment) ||
         (first.getType().getRank() > 0 &&
          buildLongRows(segment, first.getType().getShape().drop_back()));
}

/// Emits a row reduction by the code for column reductions, or a column reduction by the code for
/// row reductions.
bool NestBuilder::buildTurned(ArrayRef<Step> segment) {
  Step other = segment.front();
  bool byRows = other.kind == StepKind::RowReduction;
  other.kind = byRows ? StepKind::ColumnReduction : StepKind::RowReduction;
  return byRows ? buildColumns(other) : buildLongRows(other, other.getType().getShape());
}

void NestBuilder::dropParts(size_t parts) {
  for (; phases.size() > parts; phases.pop_back())
    eraseWithGlobals(phases.back().function);
}

void NestBuilder::finish(KernelInfo &info) {
  info.sharedBytes = scratchBytes;
  std::string name = kernel.getName().str();
  unsigned shared = kernel.getNumArguments();
  kernel.erase();
  for (auto [number, phase] : llvm::enumerate(phases)) {
    if (number == 0)
      phase.function.setName(name);
    if (scratchBytes == 0)
      (void)phase.function.eraseArgument(shared);
    info.workerBytes = std::max(info.workerBytes, phase.workerBytes);
    info.phases.push_back({phase.function.getName().str(), phase.extent, phase.tile});
    cleanUp(phase.function);
    phase.function = {};
  }
  phases.clear();
}

bool fsdp::lowerNestKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info) {
  generaliseNamedOps(kernel);
  splitArgReductions(kernel);
  std::optional<SmallVector<Step>> steps = collectSteps(kernel);
  if (!steps || steps->empty())
    return false;
  NestBuilder nest(kernel, target, std::move(*steps));
  if (!nest.build())
    return false;
  nest.finish(info);
  return true;
}
