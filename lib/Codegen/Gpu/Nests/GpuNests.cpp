//===- GpuNests.cpp - Maps, reductions and scatters on a GPU ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Divides the steps of a kernel into segments, as NestKernels.cpp does for CPUs. A segment becomes
// one or two launches:
//
//   flat      maps of one shape: a thread computes 16 bytes of the result
//   rows      all steps of a row: a fraction of a warp, a warp or a block per row
//             (GpuNestRows.cpp)
//   columns   any reduction: a thread computes 16 bytes of the result; the reduced elements
//             may be divided among several threads (GpuNestColumns.cpp)
//   scatter   a block per token (GpuNestColumns.cpp)
//
// The emitted code computes elements one by one, and LLVM combines accesses to contiguous elements.
// There are no atomic additions, and every sum has a fixed order. Therefore the bits are
// reproducible.
//
//===----------------------------------------------------------------------===//

#include "GpuNests.h"
#include "Codegen/Kernel/Lowering.h"
#include "GpuLoops.h"
#include "NestEntries.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Maximum number of bytes that a thread loads or stores at once, and maximum number of elements
/// that a thread computes at once.
static constexpr int64_t maxBytes = 16, maxWidth = 8;
static constexpr int64_t flatThreads = 256;

GpuNests::GpuNests(func::FuncOp kernel, const GpuTarget &target, SmallVector<Step> steps, bool late)
    : SegmentDriver(std::move(steps)), kernel(kernel), target(target), late(late),
      b(kernel.getLoc(), kernel.getContext(), flatThreads) {}

GpuNests::~GpuNests() {
  for (Entry &entry : entries)
    eraseWithGlobals(entry.function);
}

GpuNests::Entry GpuNests::begin() {
  Entry entry;
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(
        MemRefType::get({tensor.getNumElements()}, getStorageType(tensor.getElementType())));
  }
  types.push_back(MemRefType::get({ShapedType::kDynamic}, b.getI8Type()));
  std::string symbol = kernel.getName().str() + "$" + std::to_string(entries.size());
  b.setInsertionPoint(kernel);
  entry.function = func::FuncOp::create(b, b.loc, symbol, b.getFunctionType(types, {}));
  Block *block = entry.function.addEntryBlock();
  b.setInsertionPointToStart(block);
  func::ReturnOp::create(b, b.loc);
  b.setInsertionPointToStart(block);
  entry.scratch = block->getArguments().back();
  entry.state.kernel = kernel;
  entry.state.phase = entry.function;
  for (auto [tensor, memory] : llvm::zip(kernel.getArguments(), block->getArguments()))
    entry.state.stored[tensor] = {memory, 0};
  for (const Step &step : done) {
    if (!step.destinations.empty())
      entry.state.stored[step.value] = entry.state.stored[step.destinations.front()];
    else if (auto offset = offsets.find(step.value); offset != offsets.end())
      entry.state.stored[step.value] = {view(entry, offset->second, step.getType().getNumElements(),
                                             step.getType().getElementType()),
                                        0};
  }
  log.begin();
  return entry;
}

bool GpuNests::commit(Entry &entry, ArrayRef<Step> segment) {
  if (!entry.state.refusal.empty() || !log.isSafeInPlace()) {
    eraseWithGlobals(entry.function);
    return false;
  }
  log.finish(segment);
  entries.push_back(std::move(entry));
  return true;
}

Value GpuNests::view(Entry &entry, int64_t offset, int64_t elements, Type element) {
  auto type = MemRefType::get({elements}, getStorageType(element));
  return memref::ViewOp::create(b, b.loc, type, entry.scratch, index(offset), ValueRange());
}

/// Returns the memory to which the value of a step is stored: the destinations of the step, or a
/// view of the scratch if the step has no destinations.
GpuNests::Values GpuNests::getTargets(Entry &entry, const Step &step) {
  Values targets;
  for (BlockArgument destination : step.destinations)
    targets.push_back(entry.state.stored[destination].memory);
  if (auto offset = offsets.find(step.value); targets.empty() && offset != offsets.end())
    targets.push_back(view(entry, offset->second, step.getType().getNumElements(),
                           step.getType().getElementType()));
  return targets;
}

void GpuNests::storeAll(Entry &entry, const Step &step, Evaluator &at,
                        SmallVector<AffineExpr> indices, Value value) {
  for (AffineExpr &expr : indices)
    expr = at.subscripts().simplify(expr);
  log.store(step, indices);
  AffineExpr offset =
      fsdp::linearise(at.subscripts(), indices, step.getType().getShape(), b.getContext());
  for (Value target : getTargets(entry, step))
    at.store(value, target, offset);
}

/// Returns true if a step writes an argument that the kernel also reads.
bool GpuNests::readsWhatItWrites() const {
  func::FuncOp function = kernel;
  return llvm::any_of(function.getArguments(), [&](BlockArgument argument) {
    return !argument.use_empty() && llvm::any_of(steps, [&](const Step &step) {
      return llvm::is_contained(step.destinations, argument);
    });
  });
}

/// Returns the number of elements per thread. It begins with the elements in 16 bytes of the
/// narrowest tensor, and is halved until it divides `inner` and there are enough threads.
int64_t GpuNests::chooseWidth(ArrayRef<Step> segment, int64_t inner, int64_t total) const {
  int64_t bits = 64;
  auto include = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getNumElements() > 1)
      bits =
          std::min<int64_t>(bits, getStorageType(tensor.getElementType()).getIntOrFloatBitWidth());
  };
  for (const Step &step : segment)
    include(step.value.getType());
  func::FuncOp function = kernel;
  for (Type type : function.getArgumentTypes())
    if (isa<FloatType>(cast<RankedTensorType>(type).getElementType()))
      include(type);
  int64_t width = std::clamp<int64_t>(maxBytes * 8 / bits, 1, maxWidth);
  while (width > 1 && (inner % width || total / width < fullThreads() / 4))
    width /= 2;
  return width;
}

/// Emits code in which each thread processes `width` positions of [0, size). One more thread
/// processes the remaining positions.
void GpuNests::emitPositions(Entry &entry, int64_t size, int64_t width,
                             function_ref<void(Evaluator &, AffineExpr, int64_t)> body) {
  int64_t whole = size / width, rest = size % width, count = whole + (rest > 0);
  entry.threads = std::min<int64_t>(flatThreads, llvm::alignTo(count, 32));
  entry.blocks = llvm::divideCeil(count, entry.threads);
  Value position = b.add(b.mul(toIndex(b.block()), entry.threads), toIndex(b.thread()));
  auto emitWhole = [&] {
    Evaluator at(b, b.loc, entry.state, 1);
    body(at, at.addDim(position, 0, whole - 1) * width, width);
  };
  if (whole && entry.blocks * entry.threads == whole)
    emitWhole();
  else if (whole)
    b.when(b.isLess(position, index(whole)), emitWhole);
  if (rest)
    b.when(b.isEqual(position, whole), [&] {
      Evaluator at(b, b.loc, entry.state, 1);
      body(at, at.constant(whole * width), rest);
    });
}

bool GpuNests::buildFlat(ArrayRef<Step> segment) {
  SmallVector<int64_t> shape(segment.front().getType().getShape());
  int64_t size = segment.front().getType().getNumElements();
  if (size == 0)
    return false;
  for (const Step &step : segment) {
    if (step.getType().getShape() != ArrayRef(shape))
      return false;
    for (const Step &other : segment)
      if (!late && &other != &step && readsValue(step, other.value, steps))
        return false;
  }
  Entry entry = begin();
  log.watch(entry.state);
  Values none;
  emitPositions(entry, size, chooseWidth(segment, size, size),
                [&](Evaluator &at, AffineExpr first, int64_t count) {
                  emitBody(entry, segment, shape, {}, at, first, count, count, none, Value());
                });
  entry.state.onRead = nullptr;
  return commit(entry, segment);
}

bool GpuNests::buildMaps(ArrayRef<Step> segment) {
  const Step &first = segment.front();
  return buildFlat(segment) || (first.getType().getRank() > 0 &&
                                buildRows(segment, first.getType().getShape().drop_back()));
}

bool GpuNests::buildTurned(ArrayRef<Step> segment) {
  return segment.front().kind != StepKind::ColumnReduction && buildColumns(segment);
}

void GpuNests::dropParts(size_t parts) {
  for (; entries.size() > parts; entries.pop_back())
    eraseWithGlobals(entries.back().function);
}

bool GpuNests::build() {
  // Remove the steps that only store costly values for later steps, because on GPUs it is cheaper
  // to compute these values again.
  llvm::erase_if(steps, [](const Step &step) {
    return step.kind == StepKind::Map && step.destinations.empty();
  });
  if (steps.empty())
    return false;
  if (late) {
    if (llvm::any_of(steps, [](const Step &s) {
          return s.kind == StepKind::ColumnReduction || s.kind == StepKind::Scatter;
        }))
      return false;
    std::stable_partition(steps.begin(), steps.end(),
                          [](const Step &step) { return step.isReduction(); });
  }
  return buildSegments();
}

void GpuNests::finish(GpuKernel &info) {
  info.scratchBytes = scratchBytes;
  for (Entry &entry : entries) {
    if (!scratchBytes)
      (void)entry.function.eraseArgument(entry.function.getNumArguments() - 1);
    describeNestEntry(entry.function, kernel, entry.threads);
    info.launches.push_back({entry.function.getName().str(), entry.blocks, entry.threads, 0});
    entry.function = {};
  }
  entries.clear();
}

bool fsdp::lowerGpuNests(func::FuncOp kernel, const GpuTarget &target, GpuKernel &info) {
  generaliseNamedOps(kernel);
  IRRewriter rewriter(kernel.getContext());
  for (auto op : llvm::make_early_inc_range(kernel.getOps<linalg::ContractOp>())) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return false;
  }
  splitArgReductions(kernel);
  std::optional<SmallVector<Step>> steps = collectSteps(kernel);
  if (!steps || steps->empty())
    return false;
  // Try the order of the kernel first. If values that are still read would be overwritten in this
  // order, try an order in which all stores are at the end.
  for (bool late : {false, true}) {
    GpuNests nest(kernel, target, *steps, late);
    if (!nest.build())
      continue;
    nest.finish(info);
    return true;
  }
  return false;
}

LogicalResult fsdp::lowerGpuNestKernel(func::FuncOp kernel, const GpuTarget &target,
                                       ModuleOp entries, GpuKernel &info) {
  OwningOpRef<ModuleOp> own = ModuleOp::create(kernel.getLoc());
  auto work = cast<func::FuncOp>(kernel->clone());
  own->push_back(work);
  speculateBranches(work);
  if (lowerGpuNests(work, target, info))
    work.erase();
  else if (failed(lowerGpuLoops(work, kernel, info)))
    return failure();
  for (auto function : own->getOps<func::FuncOp>())
    cleanUp(function);
  for (GpuLaunch &launch : info.launches)
    launch.cost = costOfNestEntry(own->lookupSymbol<func::FuncOp>(launch.symbol), launch.blocks,
                                  launch.threads, target);
  entries.getBody()->getOperations().splice(entries.getBody()->end(),
                                            own->getBody()->getOperations());
  return success();
}
