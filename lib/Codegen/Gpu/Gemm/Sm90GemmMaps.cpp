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

/// Returns a tensor map whose boxes have 64 contiguous elements along digit `first`, and `rows`
/// elements along digit `second`.
static std::optional<GpuTensorMap> makeTensorMap(const Problem &problem, const GpuPlan &plan,
                                                 const Operand &operand, int first, int second,
                                                 int64_t rows) {
  GpuTensorMap map{operand.access.binding,
                   operand.access.offset * 2,
                   plan.element.isBF16(),
                   {problem.digits[first].size},
                   {},
                   {Sm90Builder::panelCols}};
  auto append = [&](int digit, int64_t box) {
    int64_t size = problem.digits[digit].size;
    map.sizes.push_back(size);
    // The stride of a dimension of size 1 is not used, but must be valid.
    map.strides.push_back(size == 1 ? strideAlignment : operand.strides[digit] * 2);
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

/// Returns the map of a factor. A block copies `width` rows (or columns) of the result at a time.
static std::optional<GpuTensorMap> makeTensorMap(const Problem &problem, const GpuPlan &plan,
                                                 const Operand &operand, const GpuSide &side,
                                                 int64_t width) {
  int inner = side.digits.back();
  if (!side.async || side.unit * 2 != strideAlignment || !isFlat(problem, side))
    return std::nullopt;
  if (side.alongK)
    return makeTensorMap(problem, plan, operand, plan.kInner, inner, width);
  return makeTensorMap(problem, plan, operand, inner, plan.kInner, plan.config.blockK);
}

std::optional<GpuTensorMap> gemm::makeResultMap(const Problem &problem, const GpuPlan &plan) {
  if (problem.stores.size() != 1 || plan.splits != 1 || !startsFromZero(problem) ||
      !isFlat(problem, plan.lhs) || !isFlat(problem, plan.rhs))
    return std::nullopt;
  const Operand &dest = problem.stores.front().dest;
  bool dependsOnRow = llvm::any_of(problem.loads, [&](const Operand &load) {
    return llvm::any_of(plan.lhs.digits, [&](int digit) { return load.strides[digit] != 0; });
  });
  int inner = plan.rhs.digits.back();
  if (dependsOnRow || dest.access.elementType != plan.element || dest.strides[inner] != 1 ||
      dest.access.offset * 2 % strideAlignment || plan.storeCols % 2)
    return std::nullopt;
  return makeTensorMap(problem, plan, dest, inner, plan.lhs.digits.back(), Sm90Builder::groupRows);
}

std::optional<std::array<GpuTensorMap, 2>> gemm::makeTensorMaps(const Problem &problem,
                                                                const GpuPlan &plan) {
  if (!plan.config.warpgroups || plan.element.isF32())
    return std::nullopt;
  auto lhs = makeTensorMap(problem, plan, problem.lhs, plan.lhs, plan.lhs.width);
  auto rhs =
      makeTensorMap(problem, plan, problem.rhs, plan.rhs, plan.rhs.width / plan.config.cluster);
  if (!lhs || !rhs)
    return std::nullopt;
  return std::array{*lhs, *rhs};
}
