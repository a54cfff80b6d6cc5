//===- GpuRows.cpp - Wide loads and stores of contiguous elements --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Elements of 16 or 32 bits are loaded and stored in words of 32 bits, up to four words at a time.
// All other elements, and elements that do not fill a word, are loaded and stored one by one.
//
//===----------------------------------------------------------------------===//

#include "GpuRows.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t maxBytes = 16, wordBytes = 4;

static int64_t bytesOf(Type type) { return std::max<int64_t>(type.getIntOrFloatBitWidth() / 8, 1); }

/// Returns the number of elements that one access moves.
static int64_t groupOf(const Pointer &place, int64_t count, int64_t aligned) {
  if (place.type.isIndex() || (bytesOf(place.type) != 2 && bytesOf(place.type) != wordBytes))
    return 1;
  int64_t group = std::min({maxBytes / bytesOf(place.type), aligned, count});
  return group * bytesOf(place.type) < wordBytes || count % group ? 1 : group;
}

static Pointer shifted(GpuBuilder &b, const Pointer &place, int64_t by) {
  return by ? b.shift(place, b.constant(by)) : place;
}

SmallVector<Value> fsdp::unpackWord(GpuBuilder &b, Value word, Type type) {
  if (bytesOf(type) == wordBytes)
    return {b.createOrFold<arith::BitcastOp>(b.loc, type, word)};
  SmallVector<Value> values;
  for (int64_t bits : {0, 16}) {
    Value half =
        arith::TruncIOp::create(b, b.loc, b.getI16Type(),
                                bits ? arith::ShRUIOp::create(b, b.loc, word, b.i32(bits)) : word);
    values.push_back(b.createOrFold<arith::BitcastOp>(b.loc, type, half));
  }
  return values;
}

SmallVector<Value> fsdp::loadRow(GpuBuilder &b, const Pointer &place, int64_t count,
                                 int64_t aligned) {
  int64_t group = groupOf(place, count, aligned), words = group * bytesOf(place.type) / wordBytes;
  SmallVector<Value> values;
  for (int64_t at = 0; at < count; at += group) {
    Pointer own = shifted(b, place, at);
    if (group == 1) {
      values.push_back(b.load(place.type, own));
      continue;
    }
    Type type = words == 1 ? Type(b.getI32Type()) : VectorType::get({words}, b.getI32Type());
    Value loaded = LLVM::LoadOp::create(b, b.loc, type, b.address(own), words * wordBytes);
    for (int64_t i = 0; i < words; ++i)
      llvm::append_range(
          values,
          unpackWord(b,
                     words == 1 ? loaded
                                : Value(LLVM::ExtractElementOp::create(b, b.loc, loaded, b.i32(i))),
                     place.type));
  }
  return values;
}

/// Packs as many values as fit into a word.
static Value toWord(GpuBuilder &b, ArrayRef<Value> values) {
  auto bits = [&](Value value, Type type) {
    return b.createOrFold<arith::BitcastOp>(b.loc, type, value);
  };
  if (values.size() == 1)
    return bits(values.front(), b.getI32Type());
  auto wide = [&](Value value) -> Value {
    return arith::ExtUIOp::create(b, b.loc, b.getI32Type(), bits(value, b.getI16Type()));
  };
  Value high = arith::ShLIOp::create(b, b.loc, wide(values[1]), b.i32(16));
  return arith::OrIOp::create(b, b.loc, wide(values[0]), high);
}

void fsdp::storeRow(GpuBuilder &b, ArrayRef<Value> values, const Pointer &place, int64_t aligned) {
  int64_t count = values.size(), group = groupOf(place, count, aligned),
          words = group * bytesOf(place.type) / wordBytes;
  for (int64_t at = 0; at < count; at += group) {
    Pointer own = shifted(b, place, at);
    if (group == 1) {
      b.store(values[at], own);
      continue;
    }
    int64_t perWord = group / words;
    Value all = words == 1
                    ? Value()
                    : LLVM::PoisonOp::create(b, b.loc, VectorType::get({words}, b.getI32Type()));
    for (int64_t i = 0; i < words; ++i) {
      Value word = toWord(b, values.slice(at + i * perWord, perWord));
      all = words == 1 ? word : Value(LLVM::InsertElementOp::create(b, b.loc, all, word, b.i32(i)));
    }
    LLVM::StoreOp::create(b, b.loc, all, b.address(own), words * wordBytes);
  }
}
