//===- GpuGemmPacks.cpp - Copies of factors along k -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// wgmma reads TF32 factors only along k, and tensor maps need rows at multiples of 16 bytes. A
// launch copies each other f32 factor to scratch, in tiles of 32 x 32 elements through shared
// memory:
//
//   factor      k 0 1 2 ..        copy        m 0 1 2 ..      rows of the copy have a multiple of
//   m contiguous  . . .     ->    k contiguous  . . .         4 elements; the padding is not read
//
// 1. A block of 256 threads has a tile. Each warp loads four rows of 32 elements, along the
//    dimension that is contiguous in the factor. Coordinates outside are moved inside.
// 2. The block stores the tile along k. Elements outside are not stored.
//
// A factor of n elements takes 8 n bytes of traffic and 4 n bytes of scratch. Copies that take more
// than `mostPackedBytes` of scratch are not made; mma.sync then multiplies the factors as they are.
//
//===----------------------------------------------------------------------===//

#include "GpuGemm.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

static constexpr int64_t mostPackedBytes = 512 << 20, rowAlignment = 4, scratchAlignment = 256;
static constexpr int64_t tileSize = 32, tilePitch = (tileSize + 1) * 4,
                         rowsAtATime = packThreads / tileSize;

int64_t GpuPlan::packedBytes() const {
  int64_t bytes = 0;
  for (const std::optional<PackedFactor> &factor : packed)
    bytes += config.warpgroups && factor ? factor->bytes : 0;
  return bytes;
}

/// Returns true if tensor maps can copy the rows of a factor along k.
static bool isAlongK(const Problem &problem, const GpuPlan &plan, const Operand &operand) {
  if (operand.strides[plan.kInner] != 1 || operand.access.offset % rowAlignment)
    return false;
  for (auto [digit, stride] : llvm::enumerate(operand.strides))
    if (static_cast<int>(digit) != plan.kInner && problem.digits[digit].size > 1 &&
        stride % rowAlignment)
      return false;
  return true;
}

/// Returns the digits that an operand depends on, except that of k which becomes contiguous.
static SmallVector<int> otherDigits(const GpuPlan &plan, const Operand &operand) {
  SmallVector<int> digits;
  for (auto [digit, stride] : llvm::enumerate(operand.strides))
    if (static_cast<int>(digit) != plan.kInner && stride != 0)
      digits.push_back(static_cast<int>(digit));
  return digits;
}

static PackedFactor makePacked(const Problem &problem, func::FuncOp kernel, const GpuPlan &plan,
                               const Operand &operand, int64_t offset) {
  PackedFactor packed{operand, 0};
  packed.operand.access.binding = static_cast<int>(kernel.getNumArguments());
  packed.operand.access.offset = offset / 4;
  packed.operand.strides.assign(operand.strides.size(), 0);
  packed.operand.strides[plan.kInner] = 1;
  int64_t elements = llvm::alignTo(plan.k, rowAlignment);
  SmallVector<int> digits = otherDigits(plan, operand);
  for (int digit : llvm::reverse(digits)) {
    packed.operand.strides[digit] = elements;
    elements *= problem.digits[digit].size;
  }
  packed.bytes = llvm::alignTo(elements * 4, scratchAlignment);
  return packed;
}

std::string gemm::planPacks(const Problem &problem, func::FuncOp kernel, GpuPlan &plan) {
  int64_t bytes = 0;
  plan.packed = {};
  auto fail = [&](const Twine &reason) {
    plan.packed = {};
    return reason.str();
  };
  for (auto [operand, packed] :
       {std::pair(&problem.lhs, &plan.packed[0]), std::pair(&problem.rhs, &plan.packed[1])}) {
    const Access &access = operand->access;
    if (access.binding < 0 || !access.maps.empty() || !access.elementType.isF32())
      return fail("a factor is computed or converted while it is loaded");
    if (isAlongK(problem, plan, *operand))
      continue;
    *packed = makePacked(problem, kernel, plan, *operand, bytes);
    bytes += (*packed)->bytes;
  }
  if (bytes > mostPackedBytes)
    return fail("copies of its factors along k would take " + Twine(bytes) + " bytes of scratch");
  return "";
}

namespace {
/// The tiles of a copy. Their rows extend along `other`, their columns along k.
struct PackTiles {
  PackTiles(const Problem &problem, const GpuPlan &plan, const Operand &source)
      : kTiles(llvm::divideCeil(plan.k, tileSize)), rest(otherDigits(plan, source)) {
    auto contiguous = llvm::find_if(rest, [&](int digit) { return source.strides[digit] == 1; });
    isTransposed = contiguous != rest.end() && source.strides[plan.kInner] != 1;
    if (contiguous == rest.end() && !rest.empty())
      contiguous = std::prev(rest.end());
    if (contiguous == rest.end())
      return;
    other = *contiguous;
    size = problem.digits[other].size;
    rest.erase(contiguous);
  }

  int64_t otherTiles() const { return llvm::divideCeil(size, tileSize); }
  int64_t count(const Problem &problem) const {
    return product(problem, rest) * otherTiles() * kTiles;
  }

  int64_t kTiles, size = 1;
  int other = -1; ///< -1 if the factor has no other dimension
  SmallVector<int> rest;
  bool isTransposed = false; ///< true if `other` is contiguous in the factor
};

class PackEmitter {
public:
  PackEmitter(GpuBuilder &b, const Problem &problem, const GpuPlan &plan, const Operand &source,
              const Operand &target)
      : b(b), problem(problem), plan(plan), source(source), target(target),
        tiles(problem, plan, source) {}
  void emit(Pointer from);

private:
  Value inTile(Value row, Value col) {
    return b.shiftBytes(b.sharedAt(0), b.add(b.mul(row, tilePitch), b.mul(col, 4)));
  }
  Value placeOf(const Operand &operand, Value other, Value k);

  GpuBuilder &b;
  const Problem &problem;
  const GpuPlan &plan;
  const Operand &source, &target;
  PackTiles tiles;
  Value rest;
};
} // namespace

/// Returns the index of an element in the binding of `operand`.
Value PackEmitter::placeOf(const Operand &operand, Value other, Value k) {
  Position position(problem.digits.size());
  setDigits(b, problem, position, rest, tiles.rest);
  position[plan.kInner] = k;
  if (tiles.other >= 0)
    position[tiles.other] = other;
  return b.add(emitOffset(b, operand.strides, position), operand.access.offset);
}

void PackEmitter::emit(Pointer from) {
  Value kTile = b.rem(b.block(), tiles.kTiles), above = b.div(b.block(), tiles.kTiles);
  rest = b.div(above, tiles.otherTiles());
  Value firstK = b.mul(kTile, tileSize),
        firstOther = b.mul(b.rem(above, tiles.otherTiles()), tileSize);
  Value lane = b.lane();
  auto inside = [&](Value index, int64_t size) { return b.min(index, b.i32(size - 1)); };
  SmallVector<Value> values;
  SmallVector<Value> rows;
  for (int64_t i = 0; i < tileSize; i += rowsAtATime)
    rows.push_back(b.add(b.warp(), i));
  for (Value row : rows) {
    Value other = b.add(firstOther, tiles.isTransposed ? lane : row),
          k = b.add(firstK, tiles.isTransposed ? row : lane);
    Value place = placeOf(source, inside(other, tiles.size), inside(k, plan.k));
    values.push_back(b.load(b.getF32Type(), b.shift(from, place)));
  }
  for (auto [row, value] : llvm::zip_equal(rows, values))
    b.store(value, {tiles.isTransposed ? inTile(lane, row) : inTile(row, lane), b.getF32Type(),
                    b.constant(0)});
  b.barrier();
  for (Value row : rows) {
    Value other = b.add(firstOther, row), k = b.add(firstK, lane);
    Value exists = b.both(b.isLower(other, tiles.size), b.isLower(k, plan.k));
    b.when(exists, [&] {
      Value value = b.load(b.getF32Type(), {inTile(row, lane), b.getF32Type(), b.constant(0)});
      b.store(value, b.shift(b.scratch(b.getF32Type()), placeOf(target, other, k)));
    });
  }
}

int64_t gemm::packBlocks(const Problem &problem, const GpuPlan &plan, unsigned number) {
  return PackTiles(problem, plan, number ? problem.rhs : problem.lhs).count(problem);
}

void gemm::addPacks(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan,
                    ModuleOp entries, GpuKernel &info) {
  for (unsigned number : {0U, 1U}) {
    const std::optional<PackedFactor> &packed = plan.packed[number];
    if (!packed)
      continue;
    const Operand &source = number ? problem.rhs : problem.lhs;
    GpuBuilder b(kernel.getLoc(), kernel.getContext(), packThreads);
    std::string symbol = kernel.getName().str() + (number ? "_rhs" : "_lhs");
    b.enter(entries, kernel, symbol, 1, /*scratch=*/true);
    PackEmitter(b, problem, plan, source, packed->operand)
        .emit(b.binding(kernel.getArgument(source.access.binding)));
    b.leave();
    GpuLaunch launch{symbol, packBlocks(problem, plan, number), packThreads, tileSize * tilePitch};
    launch.cost = costOfPack(plan, *packed);
    info.launches.push_back(std::move(launch));
  }
}
