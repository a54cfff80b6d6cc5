//===- AttentionTilesTest.cpp - Bounds of masks against brute force -------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random masks of comparisons, evaluated at every position. For all tiles of rows and of keys, each
// kept key is inside the ranges, and the mask-free parts contain no masked key.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/AttentionTiles.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
constexpr int64_t batches = 2, heads = 2;

/// Returns the value of an integer op whose operands have the given values.
int64_t interpret(Operation &op, const DenseMap<Value, int64_t> &values) {
  auto in = [&](unsigned i) { return values.lookup(op.getOperand(i)); };
  auto fold = [&](int64_t v) { // truncates to the width of the result
    Type type = op.getResult(0).getType();
    return type.isInteger(1)    ? v & 1
           : type.isInteger(32) ? static_cast<int64_t>(static_cast<int32_t>(v))
                                : v;
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = cast<IntegerAttr>(constant.getValue());
    return value.getType().isInteger(1) ? value.getValue().getZExtValue() : value.getInt();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return in(0);
  // The captured tables hold -3, 8 (two elements) or 0, 7, 1, ..
  if (isa<tensor::ExtractOp>(op))
    return cast<RankedTensorType>(op.getOperand(0).getType()).getNumElements() == 2
               ? in(1) * 11 - 3
               : (in(1) * 7) % 13;
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    Type type = cmp.getLhs().getType();
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return arith::applyCmpPredicate(cmp.getPredicate(), APInt(width, in(0), true, true),
                                    APInt(width, in(1), true, true));
  }
  if (isa<arith::SelectOp>(op))
    return in(0) & 1 ? in(1) : in(2);
  if (isa<arith::AddIOp>(op))
    return fold(in(0) + in(1));
  if (isa<arith::SubIOp>(op))
    return fold(in(0) - in(1));
  if (isa<arith::MulIOp>(op))
    return fold(in(0) * in(1));
  if (isa<arith::MinSIOp>(op))
    return std::min(in(0), in(1));
  if (isa<arith::MaxSIOp>(op))
    return std::max(in(0), in(1));
  if (isa<arith::FloorDivSIOp>(op))
    return llvm::divideFloorSigned(in(0), in(1));
  if (isa<arith::CeilDivSIOp>(op))
    return llvm::divideCeilSigned(in(0), in(1));
  if (isa<arith::RemSIOp>(op))
    return in(0) % in(1);
  if (isa<arith::DivSIOp, arith::DivUIOp>(op)) // unsigned operands are never negative here
    return in(0) / in(1);
  if (isa<arith::ShRSIOp>(op))
    return in(0) >> in(1);
  if (isa<arith::AndIOp>(op))
    return in(0) & in(1);
  if (isa<arith::OrIOp>(op))
    return in(0) | in(1);
  if (isa<arith::XOrIOp>(op))
    return in(0) ^ in(1);
  ADD_FAILURE() << "no value for " << op.getName().getStringRef().str();
  return 0;
}

/// An attention op with a random mask region, and the interpretation of the region at one position.
class RandomMask {
public:
  RandomMask(MLIRContext &context, unsigned seed) : random(seed) {
    rows = pick(1, 21), columns = pick(1, 21);
    OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(text(), ParserConfig(&context));
    if (parsed)
      module = std::move(parsed);
  }

  AttentionOp op() {
    AttentionOp found;
    module->walk([&](AttentionOp o) { found = o; });
    return found;
  }

  bool keeps(int64_t b, int64_t h, int64_t q, int64_t k) {
    return run(op().getMaskMod().front(), {b, h, q, k}) & 1;
  }

  /// Returns the value of `value`, a read of a captured table in the region, for batch b and head
  /// h.
  int64_t evaluate(Value value, int64_t b, int64_t h) {
    run(op().getMaskMod().front(), {b, h, 0, 0});
    return values.lookup(value);
  }

  int64_t rows, columns;
  OwningOpRef<ModuleOp> module;

private:
  int64_t pick(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  }

  std::string define(const std::string &type, const std::string &op) {
    std::string name = "%v" + std::to_string(count++);
    body += name + " = " + op + " : " + type + "\n";
    return name;
  }
  std::string constant(int64_t v) { return define("i32", "arith.constant " + std::to_string(v)); }

  std::string integer(unsigned depth) {
    static const char *binary[] = {"addi", "subi", "minsi", "maxsi"};
    static const char *byConstant[] = {"muli",  "floordivsi", "ceildivsi",
                                       "remsi", "divsi",      "shrsi"};
    switch (depth == 0 ? pick(0, 4) : pick(0, 8)) {
    case 0:
      return "%i";
    case 1:
      return "%j";
    case 2:
      return constant(pick(-6, 22));
    case 3:
      return pick(0, 1) ? "%hh" : "%scalar";
    case 4:
      return pick(0, 3) ? std::string(pick(0, 1) ? "%i" : "%j") : "%data";
    case 5:
    case 6: {
      std::string a = integer(depth - 1), b = integer(depth - 1);
      return define("i32", std::string("arith.") + binary[pick(0, 3)] + " " + a + ", " + b);
    }
    case 7: {
      unsigned which = pick(0, 5);
      std::string a = integer(depth - 1), b = constant(which == 5   ? pick(0, 3)
                                                       : which == 0 ? pick(-2, 3)
                                                                    : pick(1, 7));
      return define("i32", std::string("arith.") + byConstant[which] + " " + a + ", " + b);
    }
    default: {
      std::string c = condition(depth - 1), a = integer(depth - 1), b = integer(depth - 1);
      return define("i32", "arith.select " + c + ", " + a + ", " + b);
    }
    }
  }

  std::string condition(unsigned depth) {
    static const char *predicates[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                       "sge", "ult", "ule", "ugt", "uge"};
    static const char *joins[] = {"andi", "ori", "andi", "ori", "xori"};
    if (depth == 0 || pick(0, 4) == 0) {
      std::string a = integer(pick(0, 2)), b = integer(pick(0, 2));
      return define("i32",
                    std::string("arith.cmpi ") + predicates[pick(0, 9)] + ", " + a + ", " + b);
    }
    std::string a = condition(depth - 1), b = condition(depth - 1);
    if (pick(0, 7) == 0) {
      std::string c = condition(depth - 1);
      return define("i1", "arith.select " + c + ", " + a + ", " + b);
    }
    return define("i1", std::string("arith.") + joins[pick(0, 4)] + " " + a + ", " + b);
  }

  std::string text() {
    auto tensor = [](int64_t s, int64_t h = heads) {
      return "tensor<" + std::to_string(batches) + "x" + std::to_string(h) + "x" +
             std::to_string(s) + "x8xf32>";
    };
    std::string q = tensor(rows), k = tensor(columns);
    std::string lse = "tensor<" + std::to_string(batches) + "x" + std::to_string(heads) + "x" +
                      std::to_string(rows) + "xf32>";
    std::string kept = condition(pick(0, 3));
    return "func.func @f(%q: " + q + ", %k: " + k + ", %n: tensor<2xi32>, %d: tensor<64xi32>) {\n" +
           "%o, %l = fsdp.attention %q, %k, %k scale 1.0 capture(%n, %d : tensor<2xi32>, "
           "tensor<64xi32>) : " +
           q + ", " + k + ", " + k + " -> " + q + ", " + lse +
           "\nmask_mod(%b: index, %h: index, %ii: index, %jj: index, %n1: tensor<2xi32>, %d1: "
           "tensor<64xi32>) {\n" +
           "%i = arith.index_cast %ii : index to i32\n%j = arith.index_cast %jj : index to i32\n" +
           "%hh = arith.index_cast %h : index to i32\n%scalar = tensor.extract %n1[%h] : "
           "tensor<2xi32>\n" +
           "%data = tensor.extract %d1[%ii] : tensor<64xi32>\n" + body + "fsdp.yield " + kept +
           " : i1\n}\nreturn\n}\n";
  }

  int64_t run(Block &block, ArrayRef<int64_t> position) {
    for (auto [argument, value] : llvm::zip(block.getArguments(), position))
      values[argument] = value;
    for (Operation &op : block.without_terminator())
      values[op.getResult(0)] = interpret(op, values);
    return values.lookup(block.getTerminator()->getOperand(0));
  }

  std::mt19937 random;
  std::string body;
  unsigned count = 0;
  DenseMap<Value, int64_t> values;
};

class AttentionTilesTest : public testing::Test {
protected:
  AttentionTilesTest() {
    context
        .loadDialect<FSDPDialect, func::FuncDialect, arith::ArithDialect, tensor::TensorDialect>();
  }
  MLIRContext context;
};
} // namespace

/// Checks that the code emitted for `expr` computes the same value as TileExpr::evaluate().
static void checkCode(MLIRContext &context, TileExpr expr, const TileSymbols<int64_t> &tile) {
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto index = [&](int64_t v) -> Value { return arith::ConstantIndexOp::create(b, loc, v); };
  auto scalar = [&](Value v) -> Value {
    int64_t value = tile.scalar(v);
    return arith::ConstantOp::create(b, loc, v.getType(), b.getIntegerAttr(v.getType(), value));
  };
  Value result = expr.emit(
      b, loc, {index(tile.begin), index(tile.end), index(tile.batch), index(tile.head), scalar});
  DenseMap<Value, int64_t> values;
  for (Operation &op : *module->getBody())
    values[op.getResult(0)] = interpret(op, values);
  ASSERT_EQ(values.lookup(result), expr.evaluate(tile));
}

/// Checks the ranges over `extent` that tile [t0, t1) of the other side visits, where keeps(other,
/// x) is the mask: no kept x is skipped, none is visited twice, and no masked x is in a mask-free
/// part.
static void checkRanges(ArrayRef<TileRange> ranges, const TileSymbols<int64_t> &tile,
                        int64_t extent, llvm::function_ref<bool(int64_t, int64_t)> keeps) {
  std::vector<int> visited(extent, 0), free(extent, 0);
  int64_t last = 0;
  for (const TileRange &r : ranges) {
    int64_t begin = r.begin.evaluate(tile), fullBegin = r.fullBegin.evaluate(tile),
            fullEnd = r.fullEnd.evaluate(tile), end = r.end.evaluate(tile);
    ASSERT_LE(last, begin);
    ASSERT_LE(begin, fullBegin);
    ASSERT_LE(fullBegin, fullEnd);
    ASSERT_LE(fullEnd, end);
    ASSERT_LE(end, std::max(begin, extent));
    for (TileExpr e : {r.begin, r.fullBegin, r.fullEnd, r.end}) {
      int64_t value = e.evaluate(tile);
      ASSERT_LE(e.range().lo, value);
      ASSERT_GE(e.range().hi, value);
    }
    for (int64_t x = begin; x < end; ++x) {
      ++visited[x];
      free[x] += x >= fullBegin && x < fullEnd;
    }
    last = end;
  }
  for (int64_t x = 0; x < extent; ++x) {
    ASSERT_LE(visited[x], 1) << "visited twice: " << x;
    for (int64_t y = tile.begin; y < tile.end; ++y) {
      if (keeps(y, x)) {
        ASSERT_TRUE(visited[x]) << "skipped: " << x << " for " << y;
      } else {
        ASSERT_FALSE(free[x]) << "taken for mask-free: " << x << " for " << y;
      }
    }
  }
}

/// Checks the loops over tiles of `size` elements: each tile is visited at most once, and the
/// mask-free parts contain whole tiles only.
static void checkTiles(ArrayRef<TileRange> loops, const TileSymbols<int64_t> &tile, int64_t extent,
                       int64_t size, llvm::function_ref<bool(int64_t, int64_t)> keeps) {
  std::vector<TileRange> elements;
  int64_t count = (extent + size - 1) / size, last = 0;
  for (const TileRange &r : loops) {
    int64_t begin = r.begin.evaluate(tile), end = r.end.evaluate(tile),
            fullEnd = r.fullEnd.evaluate(tile);
    ASSERT_LE(last, begin);
    ASSERT_LE(end, std::max(begin, count));
    ASSERT_LE(fullEnd * size, std::max(r.fullBegin.evaluate(tile) * size, extent));
    auto at = [&](int64_t t) { return TileExpr::constant(std::min(t * size, extent)); };
    elements.push_back({at(begin), at(r.fullBegin.evaluate(tile)), at(fullEnd), at(end)});
    last = end;
  }
  checkRanges(elements, tile, extent, keeps);
}

TEST_F(AttentionTilesTest, RandomMasks) {
  unsigned skips = 0, frees = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomMask mask(context, seed);
    ASSERT_TRUE(mask.module);
    AttentionTiles tiles(mask.op());
    std::mt19937 random(seed);
    auto pick = [&](int64_t lo, int64_t hi) {
      return std::uniform_int_distribution<int64_t>(lo, hi)(random);
    };
    for (unsigned n = 0; n < 4; ++n) {
      int64_t b = pick(0, batches - 1), h = pick(0, heads - 1), size = pick(1, 6);
      auto scalar = [&](Value v) { return mask.evaluate(v, b, h); };
      for (bool overKeys : {true, false}) {
        int64_t extent = overKeys ? mask.columns : mask.rows,
                other = overKeys ? mask.rows : mask.columns;
        int64_t begin = pick(0, other - 1), end = pick(begin + 1, other);
        TileSymbols<int64_t> tile{begin, end, b, h, scalar};
        auto keeps = [&](int64_t y, int64_t x) {
          return overKeys ? mask.keeps(b, h, y, x) : mask.keeps(b, h, x, y);
        };
        ArrayRef<TileRange> ranges = overKeys ? tiles.getKeys() : tiles.getRows();
        checkRanges(ranges, tile, extent, keeps);
        checkTiles(overKeys ? tiles.getKeyTiles(size) : tiles.getRowTiles(size), tile, extent, size,
                   keeps);
        for (const TileRange &r : ranges) {
          checkCode(context, r.begin, tile);
          checkCode(context, r.fullEnd, tile);
          skips += r.end.evaluate(tile) - r.begin.evaluate(tile) < extent;
          frees += r.fullEnd.evaluate(tile) > r.fullBegin.evaluate(tile);
        }
      }
    }
    if (HasFatalFailure()) {
      mask.module->dump();
      break;
    }
    auto countKeys = [&](int64_t b, int64_t h, int64_t q) {
      int64_t kept = 0;
      for (int64_t k = 0; k < mask.columns; ++k)
        kept += mask.keeps(b, h, q, k);
      return kept;
    };
    bool inEvery = tiles.hasKeyInEveryRow(), nowhere = tiles.isFullyMasked();
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t q = 0; q < mask.rows; ++q) {
          int64_t kept = countKeys(b, h, q);
          ASSERT_TRUE(!inEvery || kept > 0);
          ASSERT_TRUE(!nowhere || kept == 0);
        }
  }
  // The masks exercise both cases: many tiles are skipped, many are mask-free.
  EXPECT_GT(skips, 1200u);
  EXPECT_GT(frees, 1200u);
}
