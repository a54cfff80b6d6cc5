//===- TensorCopies.cpp - Bulk copies of tensors ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk.tensor,
// cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor" and "Tensors: Tiled mode, Tensor
// Swizzling Modes". A box is the part of a tensor that an instruction copies. The box is dense in
// shared memory, and dimension 0 is innermost. A swizzle permutes the 16-byte chunks of the box
// within each 128 bytes. The permutation depends on the address bits from bit 7 on. For elements
// outside of the tensor, a load writes zeros or NaN, and a store writes nothing.
//
// PTX ISA specifies neither which NaN a load writes nor how a load rounds numbers to TF32. The
// emulator writes the canonical NaN of the type, and rounds to nearest.
//
//===----------------------------------------------------------------------===//

#include "emulator/TensorMap.h"
#include "emulator/arithmetic/Formats.h"
#include "emulator/memory/AsyncProxy.h"
#include "emulator/memory/MemoryModifiers.h"
#include <algorithm>

using namespace fsdprt::emulate;

namespace {
enum class Direction : uint8_t { Load, Store, Prefetch };

struct Plan {
  Direction direction = Direction::Load;
  uint8_t rank = 0;
  AddressOperand map{Space::Generic}, shared{Space::Shared}, barrier{Space::Shared};
  Slot coordinates[maxTensorRank] = {};
  Slot mask = 0;                 ///< slot of the operand ctaMask; 0 if there is none
  std::optional<Combination> op; ///< operation of cp.reduce
};

TensorMap mapOf(Warp &warp, const Plan &plan, unsigned lane) {
  Access access(warp, Touch::Reads);
  Place place = access.resolve(plan.map.space, plan.map.at(warp, lane), 128, lane, 64);
  if (place.isShared)
    warp.fail(LaneMask(1) << lane,
              "the tensor map is at %s, expected one in global or constant memory or a parameter",
              describe(place).c_str());
  access.check(place, 128, lane);
  std::optional<TensorMap> map = decodeTensorMap(place.bytes());
  if (!map)
    warp.fail(
        LaneMask(1) << lane,
        "expected a tensor map of the emulator's cuTensorMapEncodeTiled at %s, found other bytes",
        describe(place).c_str());
  if (map->rank != plan.rank)
    warp.fail(LaneMask(1) << lane, "the tensor map has %u dimensions, but the instruction %u",
              map->rank, plan.rank);
  return *map;
}

class Rows {
public:
  Rows(const TensorMap &map, const int32_t *at) : map(map) { std::copy_n(at, map.rank, corner); }
  bool next() {
    if (isFirst) {
      isFirst = false;
      return true;
    }
    ++number;
    for (unsigned d = 1; d < map.rank; ++d) {
      if (++index[d] < map.count(d))
        return true;
      index[d] = 0;
    }
    return false;
  }
  /// Returns how many elements in the current row of the box are inside of the tensor. Sets `first`
  /// to the position of the first of these elements in the row, and `address` to the address of
  /// this element.
  uint32_t inside(uint32_t &first, uint64_t &address) const {
    address = map.address;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t position = int64_t(corner[d]) + int64_t(index[d]) * map.steps[d];
      if (position < 0 || uint64_t(position) >= map.sizes[d])
        return 0;
      address += uint64_t(position) * map.strides[d - 1];
    }
    int64_t begin = std::max<int64_t>(corner[0], 0),
            end = std::min<int64_t>(int64_t(corner[0]) + map.box[0], map.sizes[0]);
    first = begin - corner[0];
    address += begin * map.elementBytes();
    return end > begin ? end - begin : 0;
  }
  uint64_t offset() const { return number * map.rowBytes(); }

private:
  const TensorMap &map;
  int32_t corner[maxTensorRank];
  uint32_t index[maxTensorRank] = {};
  uint64_t number = 0;
  bool isFirst = true;
};

/// Rounds elements of the TF32 types and flushes elements of the FTZ types.
void convert(const TensorMap &map, uint8_t *bytes, uint32_t count) {
  if (map.type != TensorType::F32Flushed && map.type != TensorType::TF32 &&
      map.type != TensorType::TF32Flushed)
    return;
  for (uint32_t k = 0; k < count; ++k) {
    float value;
    std::memcpy(&value, bytes + 4 * k, 4);
    uint32_t bits = bitsAs<uint32_t>(map.type == TensorType::TF32 ? value : flushed(value));
    if (map.type != TensorType::F32Flushed)
      bits = encode(bitsAs<float>(bits), formatTF32, Rounding::NearestEven, false) << 13;
    std::memcpy(bytes + 4 * k, &bits, 4);
  }
}

void fillOutside(const TensorMap &map, std::vector<uint8_t> &box) {
  if (map.fill == TensorFill::Zeros)
    return;
  uint64_t nan = map.type == TensorType::F16 || map.type == TensorType::BF16 ? 0x7fff
                 : map.type == TensorType::F64                               ? 0x7ff8000000000000
                                                                             : canonicalNan;
  for (size_t at = 0; at < box.size(); at += map.elementBytes())
    std::memcpy(box.data() + at, &nan, map.elementBytes());
}

/// Divides bytes of a row into chunks, each of which is contiguous in shared memory. Calls `act`
/// for each chunk.
template <typename Action>
void eachChunk(const TensorMap &map, const Place &box, uint64_t row, uint32_t first, uint32_t bytes,
               Action act) {
  uint32_t chunk = map.swizzle == TensorSwizzle::None ? map.rowBytes() : 16;
  for (uint32_t at = first; at < first + bytes;) {
    uint32_t length = std::min(chunk - at % chunk, first + bytes - at);
    Place place = box;
    place.offset = swizzled(box.offset + row + at, map.swizzle);
    act(place, at, length);
    at += length;
  }
}

void load(Warp &warp, const Plan &plan, const TensorMap &map, const int32_t *corner,
          unsigned lane) {
  AsyncCopy copy(warp, lane);
  std::vector<uint8_t> box(map.boxBytes());
  fillOutside(map, box);
  for (Rows rows(map, corner); rows.next();) {
    uint32_t first;
    uint64_t address;
    uint32_t count = rows.inside(first, address), size = map.elementBytes();
    if (!count)
      continue;
    uint8_t *to = box.data() + rows.offset() + uint64_t(first) * size;
    std::memcpy(to, copy.read(Space::Global, address, count * size, size).bytes(), count * size);
    convert(map, to, count);
  }
  auto writeTo = [&](uint64_t address, uint64_t barrier) {
    Place place = copy.writeTo(Space::Shared, address, box.size(), 128);
    for (uint64_t row = 0; row < box.size(); row += map.rowBytes())
      eachChunk(map, place, row, 0, map.rowBytes(),
                [&](const Place &to, uint32_t at, uint32_t bytes) {
                  copy.write(to, box.data() + row + at, bytes);
                });
    copy.complete(barrier, box.size(), *place.storage);
  };
  uint64_t shared = plan.shared.at(warp, lane), barrier = plan.barrier.at(warp, lane);
  if (!plan.mask)
    return writeTo(shared, barrier);
  for (uint32_t rank : multicastRanks(warp, lane, plan.mask))
    writeTo(inBlock(shared, rank), inBlock(barrier, rank));
}

/// Returns the reduction of cp.reduce.async.bulk.tensor. The reduction has the type of the tensor
/// map, or an integer type for bitwise operations.
std::optional<Reduction> reductionOf(Warp &warp, const Plan &plan, const TensorMap &map,
                                     unsigned lane) {
  if (!plan.op)
    return std::nullopt;
  Type type = map.elementType();
  if (*plan.op >= Combination::And && !isFloat(type))
    type = sizeOf(type) == 4 ? Type::B32 : sizeOf(type) == 8 ? Type::B64 : type;
  if (!isCombination(*plan.op, type))
    warp.fail(LaneMask(1) << lane, "type %s of the tensor map is not supported by this operation",
              nameOf(map.elementType()));
  return Reduction{*plan.op, type};
}

void store(Warp &warp, const Plan &plan, const TensorMap &map, const int32_t *corner,
           unsigned lane) {
  AsyncCopy copy(warp, lane);
  std::vector<uint8_t> box(map.boxBytes());
  Place place = copy.place(Space::Shared, plan.shared.at(warp, lane), box.size(), 128);
  uint32_t size = map.elementBytes(), first;
  uint64_t address;
  std::optional<Reduction> reduction = reductionOf(warp, plan, map, lane);
  for (Rows rows(map, corner); rows.next();)
    if (uint32_t count = rows.inside(first, address))
      eachChunk(map, place, rows.offset(), first * size, count * size,
                [&](const Place &from, uint32_t at, uint32_t bytes) {
                  copy.checkRead(from, bytes);
                  std::memcpy(box.data() + rows.offset() + at, from.bytes(), bytes);
                });
  for (Rows rows(map, corner); rows.next();)
    if (uint32_t count = rows.inside(first, address)) {
      uint8_t *from = box.data() + rows.offset() + uint64_t(first) * size;
      convert(map, from, count);
      copy.write(copy.writeTo(Space::Global, address, count * size, size), from, count * size,
                 reduction);
    }
  copy.joinGroup();
}

Step copyBoxes(Warp &warp, const Instruction &i, LaneMask active) {
  const Plan &plan = *static_cast<const Plan *>(i.plan);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    TensorMap map = mapOf(warp, plan, lane);
    int32_t corner[maxTensorRank];
    for (unsigned d = 0; d < plan.rank; ++d)
      corner[d] = warp.at<int32_t>(plan.coordinates[d])[lane];
    if (plan.direction == Direction::Load)
      load(warp, plan, map, corner, lane);
    else if (plan.direction == Direction::Store)
      store(warp, plan, map, corner, lane);
  }
  return Step::Next;
}
} // namespace

/// Parses [map, {coordinates}].
static void takeTensor(Decoder &d, const Operand &operand, Plan &plan, std::vector<Slot> &ins) {
  plan.map = {d, operand, Space::Generic};
  ins.push_back(plan.map.base);
  std::vector<const Operand *> coordinates;
  if (operand.elements.size() == 2)
    coordinates = Decoder::elements(operand.elements[1]);
  if (coordinates.size() != plan.rank)
    d.failAt(operand.at, fsdprt::format("expected [map, {coordinates}] with %u of them, found %zu",
                                        plan.rank, coordinates.size()));
  for (unsigned k = 0; k < plan.rank; ++k)
    ins.push_back(plan.coordinates[k] = d.source(*coordinates[k], Type::S32));
}

static void takeSpaces(Decoder &d, Plan &plan) {
  if (plan.direction == Direction::Prefetch) {
    if (!d.modifiers.take("L2") || !d.modifiers.take("global"))
      d.fail("expected .L2.global");
    return;
  }
  bool global = d.modifiers.take("global");
  int shared = d.modifiers.takeOneOf({"shared::cta", "shared::cluster"});
  bool isLoad = plan.direction == Direction::Load;
  if (!global || shared < 0 || (!isLoad && shared))
    d.fail("expected %s",
           isLoad ? ".shared::cluster.global or .shared::cta.global" : ".global.shared::cta");
  if (!d.modifiers.take(isLoad ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    d.fail("expected .%s", isLoad ? "mbarrier::complete_tx::bytes" : "bulk_group");
}

bool fsdprt::emulate::decodeTensorCopy(Decoder &d) {
  d.modifiers.take("tensor");
  Plan plan;
  int rank = d.modifiers.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  if (rank < 0)
    d.fail("expected a number of dimensions from .1d to .5d");
  plan.rank = rank + 1;
  bool isLoad = d.modifiers.has("mbarrier::complete_tx::bytes");
  plan.direction = d.modifiers.take("prefetch") ? Direction::Prefetch
                   : isLoad                     ? Direction::Load
                                                : Direction::Store;
  bool isReduction = d.modifiers.take("reduce");
  takeSpaces(d, plan);
  if (isReduction && plan.direction != Direction::Store)
    d.fail("cp.reduce is for what comes from shared memory");
  if (isReduction)
    plan.op = takeCombination(d);
  if (plan.op == Combination::Exch || plan.op == Combination::Cas)
    d.fail("cp.reduce does not exchange");
  d.modifiers.take("tile");
  bool isMulticast = d.modifiers.take("multicast::cluster"), hasHint = takeCaches(d.modifiers);
  if (isMulticast && !isLoad)
    d.fail(".multicast::cluster is for copies from global memory");
  unsigned count = (isLoad                               ? 3
                    : plan.direction == Direction::Store ? 2
                                                         : 1) +
                   isMulticast + hasHint;
  d.operandCount(count, count);
  std::vector<Slot> ins;
  takeTensor(d, d.operand(isLoad), plan, ins);
  if (plan.direction != Direction::Prefetch) {
    plan.shared = {d, d.operand(!isLoad), Space::Shared};
    ins.push_back(plan.shared.base);
  }
  if (isLoad) {
    plan.barrier = {d, d.operand(2), Space::Shared};
    ins.push_back(plan.barrier.base);
  }
  if (isMulticast)
    ins.push_back(plan.mask = d.source(3, Type::B16));
  d.emit(copyBoxes, {}, ins, plan);
  return true;
}
