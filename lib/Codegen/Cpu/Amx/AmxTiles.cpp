//===- AmxTiles.cpp - Products of bf16 in AMX tiles -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A tile register has 16 rows of 64 bytes. It holds either 16 x 16 sums of type f32, or 16 rows (or
// columns) of an operand with 32 values of k each. With 2 x 2 tiles of sums, an iteration over 32
// values of k loads four operands and forms four products:
//
//                  rhs  | b0 | b1 |      16 pairs of k x 16 columns each
//      lhs  a0          | s0 | s1 |      s[r][c] += a[r] * b[c]     (tdpbf16ps)
//           a1          | s2 | s3 |
//
// The sums are initialised from memory or with a constant, and are stored after the last iteration.
//
// An operand of type f32 consists of three slices of bf16 (F32Slices.h). An iteration then forms
// six products of slices for each tile of sums. Consecutive products have one slice in common,
// whose tiles stay in their registers.
//
// According to Intel's manual, tdpbf16ps treats denormals as 0 and computes the following for each
// row r and column c:
//
//      even = odd = 0;
//      for j in 0..15:  even = fma(a[r][2j], b[2j][c], even);  odd likewise with 2j + 1;
//      s[r][c] += even + odd;
//
// If `Product::emulated` is true, the same sums are computed by loops over vectors of columns. The
// loops differ from the instruction in one case only: if a result is denormal before rounding and
// rounding makes it the smallest normal number, the instruction flushes the result to 0.
//
//===----------------------------------------------------------------------===//

#include "AmxTiles.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::amx;

namespace {
/// Computes the addresses of the tiles of a product.
class TilePlaces {
public:
  TilePlaces(CodeBuilder &b, const Product &product) : b(b), product(product) {}

  /// Returns the address of tile `row` of a slice of the left operand. The tile's 16 steps begin at
  /// `step`.
  Pointer left(Value step, int64_t row, int64_t slice) const {
    return b.shift(product.left, b.add(b.mul(step, product.leftStep),
                                       row * product.leftTile + slice * product.leftSlice));
  }
  Pointer right(Value step, int64_t col, int64_t slice) const {
    return b.shift(product.right, b.add(b.mul(step, product.rightStep),
                                        col * tileSize + slice * product.rightSlice));
  }
  /// Returns the pairs of slices whose products are computed.
  ArrayRef<std::pair<int64_t, int64_t>> sliceProducts() const {
    return ArrayRef(amx::sliceProducts)
        .take_back(product.slices == 1 ? 1 : std::size(amx::sliceProducts));
  }
  Pointer sums(int64_t row, int64_t col) const {
    return b.shift(product.sums, b.add(b.mul(product.sumRow, row * tileSize), col * tileSize));
  }

  CodeBuilder &b;
  const Product &product;
};

/// Emits AMX instructions. The registers with the lowest numbers hold sums, and the following
/// registers hold operands.
class TileRegisters {
public:
  explicit TileRegisters(const TilePlaces &places)
      : places(places), b(places.b), numSums(places.product.rowTiles * places.product.colTiles) {
    assert((places.product.slices == 1 || places.product.slices == f32Slices) &&
           "an operand has one slice or three");
  }
  void start(Value accumulate, TypedAttr constant);
  void step(Value step);
  void store();

private:
  void call(StringRef name, ValueRange operands);
  Value number(int64_t reg);
  void move(StringRef name, int64_t reg, const Pointer &place, Value strideBytes);
  int64_t sum(int64_t row, int64_t col) const { return row * places.product.colTiles + col; }
  void forEachSum(function_ref<void(int64_t, int64_t)> body);

  const TilePlaces &places;
  CodeBuilder &b;
  int64_t numSums;
};

/// Emits the arithmetic of tdpbf16ps for one row of 16 sums at a time.
class EmulatedTiles {
public:
  explicit EmulatedTiles(const TilePlaces &places)
      : places(places), b(places.b), type(VectorType::get({tileSize}, b.getF32Type())),
        bits(VectorType::get({tileSize}, b.getI32Type())) {}
  void run(Value steps, Value accumulate, TypedAttr constant);

private:
  Value flush(Value vector);
  Value half(Value pairs, bool odd);
  Value addSteps(const Pointer &left, const Pointer &right, Value sum);

  const TilePlaces &places;
  CodeBuilder &b;
  VectorType type, bits;
};
} // namespace

void TileRegisters::call(StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(b, b.loc, b.getStringAttr(name), operands);
}

Value TileRegisters::number(int64_t reg) {
  return LLVM::ConstantOp::create(b, b.loc, b.getI8IntegerAttr(reg));
}

void TileRegisters::move(StringRef name, int64_t reg, const Pointer &place, Value strideBytes) {
  call(name, {number(reg), b.address(place), strideBytes});
}

void TileRegisters::forEachSum(function_ref<void(int64_t, int64_t)> body) {
  for (int64_t row = 0; row < places.product.rowTiles; ++row)
    for (int64_t col = 0; col < places.product.colTiles; ++col)
      body(row, col);
}

void TileRegisters::start(Value accumulate, TypedAttr constant) {
  Value strideBytes = b.mul(places.product.sumRow, 4);
  auto load = [&] {
    forEachSum([&](int64_t row, int64_t col) {
      move("llvm.x86.tileloadd64", sum(row, col), places.sums(row, col), strideBytes);
    });
  };
  b.when(accumulate, load, [&] {
    if (cast<FloatAttr>(constant).getValue().isPosZero()) {
      for (int64_t reg = 0; reg < numSums; ++reg)
        call("llvm.x86.tilezero", number(reg));
      return;
    }
    auto type = VectorType::get({tileSize}, b.getF32Type());
    Value value = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(type, constant));
    b.loop(b.constant(0), b.constant(places.product.rowTiles * tileSize), 1, [&](Value row) {
      for (int64_t col = 0; col < places.product.colTiles * tileSize; col += tileSize)
        b.store(value, b.shift(places.product.sums, b.add(b.mul(row, places.product.sumRow), col)));
    });
    load();
  });
}

void TileRegisters::step(Value step) {
  Value leftStride = b.constant(places.product.leftRow * 4),
        rightStride = b.constant(places.product.rightStep * 4);
  bool oneRow = places.product.rowTiles == 1;
  // With one row of tiles, the tile of the left operand stays in a register for the whole step.
  // Otherwise all tiles of the right operand stay in registers. The tiles of the other operand are
  // loaded one by one into the remaining registers.
  int64_t held = oneRow ? 1 : places.product.colTiles,
          passing = oneRow ? places.product.colTiles : places.product.rowTiles;
  // The tile (number and slice) in each register. All tiles of a register are of the same operand.
  std::pair<int64_t, int64_t> loaded[numRegisters];
  llvm::fill(loaded, std::pair<int64_t, int64_t>(-1, -1));
  auto load = [&](bool isLeft, int64_t index, int64_t slice, int64_t reg) {
    if (std::exchange(loaded[reg], {index, slice}) == std::pair(index, slice))
      return;
    bool streams = !isLeft && places.product.streamsRight;
    move(streams ? "llvm.x86.tileloaddt164" : "llvm.x86.tileloadd64", reg,
         isLeft ? places.left(step, index, slice) : places.right(step, index, slice),
         isLeft ? leftStride : rightStride);
  };
  for (auto [leftSlice, rightSlice] : places.sliceProducts()) {
    for (int64_t i = 0; i < held; ++i)
      load(/*isLeft=*/oneRow, i, oneRow ? leftSlice : rightSlice, numSums + i);
    for (int64_t p = 0; p < passing; ++p) {
      int64_t reg = numSums + held + p % std::min<int64_t>(numRegisters - numSums - held, passing);
      load(/*isLeft=*/!oneRow, p, oneRow ? rightSlice : leftSlice, reg);
      for (int64_t i = 0; i < held; ++i) {
        int64_t left = oneRow ? numSums + i : reg, right = oneRow ? reg : numSums + i;
        call("llvm.x86.tdpbf16ps",
             {number(oneRow ? sum(i, p) : sum(p, i)), number(left), number(right)});
      }
    }
  }
}

void TileRegisters::store() {
  Value strideBytes = b.mul(places.product.sumRow, 4);
  forEachSum([&](int64_t row, int64_t col) {
    move("llvm.x86.tilestored64", sum(row, col), places.sums(row, col), strideBytes);
  });
}

void amx::emitConfigure(CodeBuilder &b, const Pointer &place) {
  // Byte 0 of the configuration is the palette (1). Bytes 16 to 31 hold the row size of each
  // register in bytes, as 16-bit integers. Bytes 48 to 55 hold the number of rows of each register.
  SmallVector<int8_t> bytes(configBytes, 0);
  bytes[0] = 1;
  for (int64_t reg = 0; reg < numRegisters; ++reg) {
    bytes[16 + 2 * reg] = 64;
    bytes[48 + reg] = tileSize;
  }
  auto type = VectorType::get({configBytes}, b.getI8Type());
  b.store(arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(type, ArrayRef(bytes))),
          place);
  LLVM::CallIntrinsicOp::create(b, b.loc, b.getStringAttr("llvm.x86.ldtilecfg"),
                                ValueRange{b.address(place)});
}

void amx::emitRelease(CodeBuilder &b) {
  LLVM::CallIntrinsicOp::create(b, b.loc, b.getStringAttr("llvm.x86.tilerelease"), ValueRange{});
}

/// Replaces denormals by zeros of the same sign.
Value EmulatedTiles::flush(Value vector) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.loc,
                                     DenseElementsAttr::get(bits, b.getI32IntegerAttr(value)));
  };
  Value raw = arith::BitcastOp::create(b, b.loc, bits, vector);
  Value exponent = arith::AndIOp::create(b, b.loc, raw, constant(0x7f800000));
  Value isDenormal =
      arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, exponent, constant(0));
  Value sign = arith::AndIOp::create(b, b.loc, raw, constant(INT32_MIN));
  Value kept = arith::SelectOp::create(b, b.loc, isDenormal, sign, raw);
  return arith::BitcastOp::create(b, b.loc, type, kept);
}

/// Returns the even bf16 (low half) or the odd bf16 (high half) of each pair, converted to f32.
Value EmulatedTiles::half(Value pairs, bool odd) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.loc,
                                     DenseElementsAttr::get(bits, b.getI32IntegerAttr(value)));
  };
  Value raw = odd ? Value(arith::AndIOp::create(b, b.loc, pairs, constant(-0x10000)))
                  : Value(arith::ShLIOp::create(b, b.loc, pairs, constant(16)));
  return flush(arith::BitcastOp::create(b, b.loc, type, raw));
}

/// Adds the products of 16 steps to the sums of one row. `left` is the address of this row in a
/// tile of the left operand, and `right` that of a tile of the right operand.
Value EmulatedTiles::addSteps(const Pointer &left, const Pointer &right, Value sum) {
  Value zero = b.zero(type);
  auto chains = b.loop(b.constant(0), b.constant(tileSize), 1, {zero, zero},
                       [&](Value j, ValueRange carried) -> CodeBuilder::Carried {
                         Value l = b.splat(b.load(b.getI32Type(), b.shift(left, j)), tileSize);
                         Value r = b.load(bits, b.shift(right, b.mul(j, places.product.rightStep)));
                         CodeBuilder::Carried next;
                         for (bool odd : {false, true})
                           next.push_back(flush(b.fma(half(l, odd), half(r, odd), carried[odd])));
                         return next;
                       });
  return flush(b.addf(flush(sum), flush(b.addf(chains[0], chains[1]))));
}

void EmulatedTiles::run(Value steps, Value accumulate, TypedAttr constant) {
  Value start = arith::ConstantOp::create(b, b.loc, DenseElementsAttr::get(type, constant));
  for (int64_t rowTile = 0; rowTile < places.product.rowTiles; ++rowTile)
    b.loop(b.constant(0), b.constant(tileSize), 1, [&](Value row) {
      for (int64_t colTile = 0; colTile < places.product.colTiles; ++colTile) {
        Pointer place = b.shift(places.sums(rowTile, colTile), b.mul(row, places.product.sumRow));
        auto first = b.choose(
            accumulate, type, [&] { return CodeBuilder::Carried{b.load(type, place)}; },
            [&] { return CodeBuilder::Carried{start}; });
        auto sum = b.loop(b.constant(0), steps, tileSize, first,
                          [&](Value step, ValueRange carried) -> CodeBuilder::Carried {
                            Value sum = carried[0];
                            for (auto [leftSlice, rightSlice] : places.sliceProducts())
                              sum = addSteps(b.shift(places.left(step, rowTile, leftSlice),
                                                     b.mul(row, places.product.leftRow)),
                                             places.right(step, colTile, rightSlice), sum);
                            return {sum};
                          });
        b.store(sum[0], place);
      }
    });
}

void amx::emitProduct(CodeBuilder &b, const Product &product, Value steps, Value accumulate,
                      TypedAttr constant, function_ref<void(Value)> beside) {
  TilePlaces places(b, product);
  auto eachStep = [&](function_ref<void(Value)> body) {
    b.loop(b.constant(0), steps, tileSize, [&](Value step) {
      body(step);
      if (beside)
        beside(step);
    });
  };
  if (product.emulated) {
    if (beside) // The loops do not run beside anything, so its code runs before them.
      eachStep([](Value) {});
    return EmulatedTiles(places).run(steps, accumulate, constant);
  }
  TileRegisters registers(places);
  registers.start(accumulate, constant);
  eachStep([&](Value step) { registers.step(step); });
  registers.store();
}
