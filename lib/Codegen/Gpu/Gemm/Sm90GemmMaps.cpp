//===- Sm90GemmMaps.cpp - Tensor maps of a contraction ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tensor map of a tensor has one dimension for each digit that the tensor depends on. The first
// dimension is contiguous in memory, and the second is the other dimension of the tile. All further
// digits are constant within a tile. Therefore the rows (or columns) of a tile must not cross a
// border of their innermost digit.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "GpuGemmEpilogue.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

/// Limits of cuTensorMapEncodeTiled for the alignment and size of strides, and for dimensions.
static constexpr int64_t strideAlignment = 16, strideLimit = INT64_C(1) << 40, maxDimensions = 5;

/// Returns true if, among the digits of the rows (or columns), only the innermost digit changes
/// within a tile.
static bool isFlat(const Problem &problem, const GpuSide &side) {
  return side.digits.size() == 1 || problem.digits[side.digits.back()].size % side.width == 0;
}

static int64_t bytesOf(const Operand &operand) {
  return operand.access.elementType.isF32() ? 4 : 2;
}

/// Returns a tensor map whose boxes have 128 contiguous bytes along digit `first`, and `rows`
/// elements along digit `second`. In a map of 16-bit elements, an f32 element is two elements.
static std::optional<GpuTensorMap> makeTensorMap(const Problem &problem, const Operand &operand,
                                                 int first, int second, int64_t rows,
                                                 GpuTensorType type) {
  int64_t bytes = bytesOf(operand), unit = type == GpuTensorType::TF32 ? 4 : 2;
  GpuTensorMap map{operand.access.binding,
                   operand.access.offset * bytes,
                   type,
                   {problem.digits[first].size * bytes / unit},
                   {},
                   {Sm90Builder::panelBytes / unit}};
  auto append = [&](int digit, int64_t box) {
    int64_t size = problem.digits[digit].size;
    map.sizes.push_back(size);
    // The stride of a dimension of size 1 is not used, but must be valid.
    map.strides.push_back(size == 1 ? strideAlignment : operand.strides[digit] * bytes);
    map.box.push_back(box);
  };
  append(second, rows);
  for (auto [digit, stride] : llvm::enumerate(operand.strides))
    if (static_cast<int>(digit) != first && static_cast<int>(digit) != second && stride != 0)
      append(digit, 1);
  auto isStride = [](int64_t stride) {
    return stride > 0 && stride < strideLimit && stride % strideAlignment == 0;
  };
  return map.sizes.size() <= maxDimensions && llvm::all_of(map.strides, isStride)
             ? std::optional(map)
             : std::nullopt;
}

/// Factors that the kernel splits are copied as 16-bit elements, because TF32 would be rounded.
static GpuTensorType typeOf(const GpuPlan &plan) {
  return plan.element.isBF16()                    ? GpuTensorType::BF16
         : plan.element.isF16() || plan.isSplit() ? GpuTensorType::F16
                                                  : GpuTensorType::TF32;
}

/// Returns the map of a factor. A block copies `width` rows (or columns) of the result at a time.
static std::optional<GpuTensorMap> makeTensorMap(const Problem &problem, const GpuPlan &plan,
                                                 const Operand &operand, const GpuSide &side,
                                                 int64_t width) {
  int inner = side.digits.back();
  if (!side.async || side.unit * bytesOf(operand) != strideAlignment || !isFlat(problem, side))
    return std::nullopt;
  if (side.alongK)
    return makeTensorMap(problem, operand, plan.kInner, inner, width, typeOf(plan));
  if (plan.element.isF32())
    return std::nullopt;
  return makeTensorMap(problem, operand, inner, plan.kInner, plan.config.blockK, typeOf(plan));
}

int64_t EpilogueBoxes::countBoxes(ArrayRef<EpilogueBox> tensors) {
  return llvm::sum_of(llvm::map_range(tensors, [](const EpilogueBox &box) { return box.boxes(); }));
}

int64_t EpilogueBoxes::loadsPerStage(const GpuPlan &plan) {
  return plan.stageBytes() / (plan.config.blockRows * Sm90Builder::panelBytes);
}

int64_t EpilogueBoxes::stages(const GpuPlan &plan) const {
  int64_t boxes = plan.config.blockCols / Sm90Builder::panelCols * loadsPerPanel();
  return llvm::divideCeil(boxes, loadsPerStage(plan));
}

bool gemm::isVector(const GpuPlan &plan, const Operand &operand) {
  return operand.access.binding < 0 || operand.strides[plan.lhs.digits.back()] == 0 ||
         operand.strides[plan.rhs.digits.back()] == 0;
}

/// Returns the map of a tensor of the epilogue, whose boxes have `rows` rows.
static std::optional<EpilogueBox> makeEpilogueBox(const Problem &problem, const GpuPlan &plan,
                                                  const Operand &operand, int64_t rows) {
  Type type = operand.access.elementType;
  int inner = plan.rhs.digits.back();
  bool isWide = type.isF32();
  if ((!isWide && !type.isBF16() && !type.isF16()) || operand.strides[inner] != 1 ||
      operand.access.offset * (isWide ? 4 : 2) % strideAlignment)
    return std::nullopt;
  auto words = plan.element.isBF16() ? GpuTensorType::BF16 : GpuTensorType::F16;
  auto map = makeTensorMap(problem, operand, inner, plan.lhs.digits.back(), rows, words);
  return map ? std::optional(EpilogueBox{&operand, *map, isWide}) : std::nullopt;
}

std::optional<EpilogueBoxes> gemm::makeEpilogueBoxes(const Problem &problem, const GpuPlan &plan) {
  if (plan.splits != 1 || !isFlat(problem, plan.lhs) || !isFlat(problem, plan.rhs) ||
      plan.storeCols % 2)
    return std::nullopt;
  EpilogueBoxes boxes;
  auto append = [&](const Operand &operand, int64_t rows, SmallVectorImpl<EpilogueBox> &list) {
    auto box = makeEpilogueBox(problem, plan, operand, rows);
    if (box)
      list.push_back(*box);
    return box.has_value();
  };
  auto appendLoad = [&](const Operand &load) {
    return isVector(plan, load) || append(load, plan.config.blockRows, boxes.loads);
  };
  if ((!startsFromZero(problem) && !appendLoad(problem.init)) ||
      !llvm::all_of(problem.loads, appendLoad) ||
      !llvm::all_of(problem.stores, [&](const StoreStep &store) {
        return append(store.dest, Sm90Builder::groupRows, boxes.stores);
      }))
    return std::nullopt;
  // The boxes of a panel are in the ring of stages together, in addition to a stage of factors.
  int64_t stages = llvm::divideCeil(boxes.loadsPerPanel(), EpilogueBoxes::loadsPerStage(plan)) + 1;
  constexpr size_t mostMaps = 14; // in addition to those of the factors
  // ptxas spills registers of longer epilogues that read boxes.
  constexpr double mostWork = 40;
  bool isLong = !boxes.loads.empty() && workOfMaps(problem).issue > mostWork;
  return stages < plan.config.stages && !isLong &&
                 boxes.loads.size() + boxes.stores.size() <= mostMaps
             ? std::optional(boxes)
             : std::nullopt;
}

std::optional<std::array<GpuTensorMap, 2>> gemm::makeTensorMaps(const Problem &problem,
                                                                const GpuPlan &plan) {
  if (!plan.config.warpgroups)
    return std::nullopt;
  auto lhs = makeTensorMap(problem, plan, plan.lhsOf(problem), plan.lhs, plan.lhs.width);
  auto rhs = makeTensorMap(problem, plan, plan.rhsOf(problem), plan.rhs,
                           plan.rhs.width / plan.config.cluster);
  if (!lhs || !rhs)
    return std::nullopt;
  return std::array{*lhs, *rhs};
}
