//===- MatrixLoadStore.cpp - Matrices of 8 x 8 between lanes and shared memory *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Warp Level Matrix Instructions: ldmatrix, stmatrix, movmatrix". Lane 8 m + r
// provides the address of row r of matrix m. A row has 16 bytes. The register of lane l contains
// elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 or, with .trans, of column l / 4.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Lanes.h"
#include "emulator/memory/MemoryModifiers.h"

using namespace fsdprt::emulate;

namespace {
struct Plan {
  Space space;
  uint8_t count; ///< number of matrices
  bool isTransposed, isWide;
};

Plan planOf(const Instruction &i) {
  Plan plan;
  std::memcpy(&plan, &i.payload, sizeof plan);
  return plan;
}

using Matrix = uint16_t[8][8];

/// Resolves the addresses of the rows. The first 8 * plan.count lanes provide the addresses.
void findRows(Warp &warp, const Instruction &i, const Plan &plan, LaneMask active,
              const Access &access, Traffic &traffic, Place *rows) {
  if (active != allLanes)
    warp.fail(active, "all 32 lanes have to take part");
  unsigned count = 8 * plan.count;
  if (warp.block.cluster.grid.launch.checks.initialised)
    warp.checkRead(i.in[0], count == 32 ? allLanes : (LaneMask(1) << count) - 1);
  for (unsigned lane = 0; lane < count; ++lane) {
    uint64_t address = addressOf(warp, i.in[0], plan.isWide, i.immediate, lane);
    rows[lane] = access.resolve(plan.space, address, 16, lane);
    if (!rows[lane].isShared)
      warp.fail(LaneMask(1) << lane, "address 0x%llx is not in shared memory",
                static_cast<unsigned long long>(address));
    traffic.add(rows[lane], address, 16);
  }
}

void toLanes(Warp &warp, Slot slot, const Matrix &matrix, bool isTransposed) {
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    unsigned major = lane / 4, minor = 2 * (lane % 4);
    uint32_t low = isTransposed ? matrix[minor][major] : matrix[major][minor];
    uint32_t high = isTransposed ? matrix[minor + 1][major] : matrix[major][minor + 1];
    warp.at<uint32_t>(slot)[lane] = high << 16 | low;
  }
}

void fromLanes(Warp &warp, Slot slot, Matrix &matrix, bool isTransposed) {
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    unsigned major = lane / 4, minor = 2 * (lane % 4);
    uint32_t pair = warp.at<uint32_t>(slot)[lane];
    (isTransposed ? matrix[minor][major] : matrix[major][minor]) = pair;
    (isTransposed ? matrix[minor + 1][major] : matrix[major][minor + 1]) = pair >> 16;
  }
}

Step loadMatrices(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  Access access(warp, Touch::Reads);
  Traffic traffic;
  Place rows[warpSize];
  findRows(warp, i, plan, active, access, traffic, rows);
  for (unsigned m = 0; m < plan.count; ++m) {
    Matrix matrix;
    for (unsigned row = 0; row < 8; ++row) {
      access.check(rows[8 * m + row], 16, 8 * m + row);
      std::memcpy(matrix[row], rows[8 * m + row].bytes(), 16);
    }
    toLanes(warp, i.out[m], matrix, plan.isTransposed);
  }
  traffic.count(warp.block.cluster.grid.counters, false);
  return Step::Next;
}

Step storeMatrices(Warp &warp, const Instruction &i, LaneMask active) {
  Plan plan = planOf(i);
  Access access(warp, Touch::Writes);
  Traffic traffic;
  Place rows[warpSize];
  findRows(warp, i, plan, active, access, traffic, rows);
  for (unsigned m = 0; m < plan.count; ++m) {
    Matrix matrix;
    if (warp.block.cluster.grid.launch.checks.initialised)
      warp.checkRead(i.in[1 + m], allLanes);
    fromLanes(warp, i.in[1 + m], matrix, plan.isTransposed);
    for (unsigned row = 0; row < 8; ++row) {
      access.check(rows[8 * m + row], 16, 8 * m + row,
                   reinterpret_cast<const uint8_t *>(matrix[row]));
      std::memcpy(rows[8 * m + row].bytes(), matrix[row], 16);
    }
  }
  traffic.count(warp.block.cluster.grid.counters, true);
  return Step::Next;
}

Step transposeMatrix(Warp &warp, const Instruction &i, LaneMask active) {
  if (active != allLanes)
    warp.fail(active, "all 32 lanes have to take part");
  Matrix matrix;
  fromLanes(warp, i.in[0], matrix, false);
  toLanes(warp, i.out[0], matrix, true);
  return Step::Next;
}
} // namespace

bool fsdprt::emulate::decodeMatrixMove(Decoder &d) {
  std::string_view name = d.modifiers.name();
  d.modifiers.take("sync");
  d.modifiers.take("aligned");
  if (!d.modifiers.take("m8n8"))
    d.fail("expected .m8n8");
  Plan plan = {};
  plan.isTransposed = d.modifiers.take("trans");
  if (name == "movmatrix") {
    d.typeOneOf({Type::B16});
    d.operandCount(2, 2);
    d.emit(transposeMatrix, {d.destination(0, Type::B32)}, {d.source(1, Type::B32)});
    return true;
  }
  int count = d.modifiers.takeOneOf({"x1", "x2", "x4"});
  if (count < 0)
    d.fail("expected .x1, .x2 or .x4");
  plan.count = 1 << count;
  plan.space = takeSpace(d.modifiers);
  d.typeOneOf({Type::B16});
  d.operandCount(2, 2);
  bool isLoad = name == "ldmatrix";
  int64_t offset;
  std::vector<Slot> ins{d.address(d.operand(isLoad ? 1 : 0), plan.space, offset, plan.isWide)},
      outs;
  auto registers = Decoder::elements(d.operand(isLoad ? 0 : 1));
  if (registers.size() != plan.count)
    d.fail("expected %u registers, found %zu", plan.count, registers.size());
  for (const Operand *each : registers)
    isLoad ? outs.push_back(d.destination(*each, Type::B32))
           : ins.push_back(d.source(*each, Type::B32));
  Instruction &i = d.emit(isLoad ? loadMatrices : storeMatrices, outs, ins);
  i.uncheckedIns = ins.size();
  i.immediate = offset;
  std::memcpy(&i.payload, &plan, sizeof plan);
  return true;
}
