//===- IdRangesTest.cpp - Exhaustive tests of integer ranges ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests all intervals of 4-bit integers and all values in them: the result of an op for values in
// the operands' intervals must be in the interval that IdRanges finds. The expected values come
// from folding the op with constants, so that both sides share no code. For some ops, the interval
// must be the smallest one if nothing wraps.
//
//===----------------------------------------------------------------------===//

#include "Lookups/IdRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t lowest = -8, highest = 7; // range of a 4-bit integer

namespace {
/// Builds an op on arguments of a function, which are integers of `widths` bits, or index if 0.
class Subject {
public:
  using Build = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

  Subject(ArrayRef<unsigned> widths, Build build)
      : builder(&context), loc(UnknownLoc::get(&context)) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    SmallVector<Type> types;
    for (unsigned width : widths)
      types.push_back(getType(builder, width));
    auto function = func::FuncOp::create(builder, loc, "f", builder.getFunctionType(types, {}));
    block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    result = build(builder, loc, block->getArguments());
  }

  static Type getType(OpBuilder &b, unsigned width) {
    return width ? Type(b.getIntegerType(width)) : Type(b.getIndexType());
  }

  /// Returns the interval of the result for intervals of the arguments.
  IntegerRange find(ArrayRef<IntegerRange> arguments) {
    IdRanges ranges;
    for (auto [argument, interval] : llvm::zip_equal(block->getArguments(), arguments))
      ranges.assume(argument, interval);
    return ranges.get(result);
  }

  /// Returns the value of the result for values of the arguments; nothing if it has none, as in a
  /// division by zero.
  std::optional<int64_t> evaluate(ArrayRef<int64_t> arguments) {
    SmallVector<Attribute> constants;
    for (auto [argument, value] : llvm::zip_equal(block->getArguments(), arguments))
      constants.push_back(builder.getIntegerAttr(argument.getType(), value));
    SmallVector<OpFoldResult> folded;
    if (failed(result.getDefiningOp()->fold(constants, folded)))
      return std::nullopt;
    // An op may fold to one of its operands.
    Attribute attr = dyn_cast<Attribute>(folded.front());
    if (!attr)
      attr = constants[cast<BlockArgument>(cast<Value>(folded.front())).getArgNumber()];
    auto integer = dyn_cast<IntegerAttr>(attr);
    if (!integer)
      return std::nullopt;
    return integer.getType().isInteger(1) ? integer.getValue().getZExtValue()
                                          : integer.getValue().getSExtValue();
  }

private:
  MLIRContext context;
  OpBuilder builder;
  Location loc;
  OwningOpRef<ModuleOp> module;
  Block *block;
  Value result;
};

/// Smallest interval of a set of values; nothing if the set is empty.
struct Hull {
  std::optional<IntegerRange> interval;
  void add(int64_t value) {
    interval = interval ? IntegerRange{std::min(interval->lo, value), std::max(interval->hi, value)}
                        : IntegerRange::of(value);
  }
};
} // namespace

static SmallVector<IntegerRange> allIntervals(int64_t lo = lowest, int64_t hi = highest) {
  SmallVector<IntegerRange> all;
  for (int64_t first = lo; first <= hi; ++first)
    for (int64_t last = first; last <= hi; ++last)
      all.push_back({first, last});
  return all;
}

static std::string text(IntegerRange interval) {
  return "[" + std::to_string(interval.lo) + ", " + std::to_string(interval.hi) + "]";
}

enum class Needs { Sound, Smallest };

/// Checks a binary op on all pairs of intervals. `exact` computes the value without wrapping: the
/// smallest interval is expected where all values fit into 4 bits.
static void checkBinary(const char *name, Subject::Build build, Needs needs,
                        int64_t (*exact)(int64_t, int64_t) = nullptr) {
  SCOPED_TRACE(name);
  Subject subject({4, 4}, build);
  std::optional<int64_t> table[16][16];
  int numValues = 0;
  for (int64_t x = lowest; x <= highest; ++x)
    for (int64_t y = lowest; y <= highest; ++y)
      numValues += (table[x - lowest][y - lowest] = subject.evaluate({x, y})).has_value();
  EXPECT_GE(numValues, 64) << "the op folds";
  int numWrong = 0;
  for (IntegerRange a : allIntervals())
    for (IntegerRange b : allIntervals()) {
      IntegerRange found = subject.find({a, b});
      Hull hull;
      bool wraps = false;
      for (int64_t x = a.lo; x <= a.hi; ++x)
        for (int64_t y = b.lo; y <= b.hi; ++y)
          if (std::optional<int64_t> value = table[x - lowest][y - lowest]) {
            hull.add(*value);
            wraps |= exact && exact(x, y) != *value;
          }
      if (!hull.interval)
        continue;
      bool isSound = hull.interval->within(found.lo, found.hi);
      bool isSmallest = found.lo == hull.interval->lo && found.hi == hull.interval->hi;
      if ((!isSound || (needs == Needs::Smallest && !wraps && !isSmallest)) && ++numWrong <= 3)
        ADD_FAILURE() << text(a) << " and " << text(b) << " give " << text(*hull.interval)
                      << ", found " << text(found);
    }
  EXPECT_EQ(numWrong, 0);
}

template <typename Op>
static void checkBinary(Needs needs = Needs::Sound, int64_t (*exact)(int64_t, int64_t) = nullptr) {
  checkBinary(
      Op::getOperationName().data(),
      [](OpBuilder &b, Location loc, ValueRange x) -> Value {
        return Op::create(b, loc, x[0], x[1]);
      },
      needs, exact);
}

TEST(IdRanges, BinaryOpsHoldAllValues) {
  checkBinary<arith::AddIOp>(Needs::Smallest, [](int64_t x, int64_t y) { return x + y; });
  checkBinary<arith::SubIOp>(Needs::Smallest, [](int64_t x, int64_t y) { return x - y; });
  checkBinary<arith::MulIOp>(Needs::Smallest, [](int64_t x, int64_t y) { return x * y; });
  checkBinary<arith::MaxSIOp>(Needs::Smallest);
  checkBinary<arith::MinSIOp>(Needs::Smallest);
  checkBinary<arith::MaxUIOp>();
  checkBinary<arith::MinUIOp>();
  checkBinary<arith::DivSIOp>();
  checkBinary<arith::DivUIOp>();
  checkBinary<arith::CeilDivSIOp>();
  checkBinary<arith::CeilDivUIOp>();
  checkBinary<arith::FloorDivSIOp>();
  checkBinary<arith::RemSIOp>();
  checkBinary<arith::RemUIOp>();
  checkBinary<arith::AndIOp>();
  checkBinary<arith::OrIOp>();
  checkBinary<arith::XOrIOp>();
  checkBinary<arith::ShLIOp>();
  checkBinary<arith::ShRSIOp>();
  checkBinary<arith::ShRUIOp>();
}

TEST(IdRanges, ComparisonsAreDecidedIfAllValuesAgree) {
  for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i) {
    auto predicate = static_cast<arith::CmpIPredicate>(i);
    bool isUnsigned =
        predicate == arith::CmpIPredicate::ult || predicate == arith::CmpIPredicate::ule ||
        predicate == arith::CmpIPredicate::ugt || predicate == arith::CmpIPredicate::uge;
    checkBinary(
        arith::stringifyCmpIPredicate(predicate).data(),
        [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
          return arith::CmpIOp::create(b, loc, predicate, x[0], x[1]);
        },
        isUnsigned ? Needs::Sound : Needs::Smallest);
  }
}

/// Checks an op with one operand of `from` bits and a result of `to` bits; 0 denotes index.
template <typename Op>
static void checkCast(unsigned from, unsigned to) {
  SCOPED_TRACE(Op::getOperationName().str() + " from " + std::to_string(from) + " to " +
               std::to_string(to));
  Subject subject({from}, [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return Op::create(b, loc, Subject::getType(b, to), x[0]);
  });
  int64_t half = int64_t(1) << (from ? from - 1 : 4);
  int numValues = 0;
  for (IntegerRange a : from == 1 ? allIntervals(0, 1) : allIntervals(-half, half - 1)) {
    IntegerRange found = subject.find({a});
    for (int64_t x = a.lo; x <= a.hi; ++x)
      if (std::optional<int64_t> value = subject.evaluate({x})) {
        ++numValues;
        ASSERT_TRUE(IntegerRange::of(*value).within(found.lo, found.hi))
            << text(a) << ": " << x << " gives " << *value << ", found " << text(found);
      }
  }
  EXPECT_GE(numValues, 4) << "the op folds";
}

TEST(IdRanges, CastsHoldAllValues) {
  for (unsigned from : {1, 4, 5})
    for (unsigned to : {6, 64}) {
      checkCast<arith::ExtSIOp>(from, to);
      checkCast<arith::ExtUIOp>(from, to);
    }
  for (unsigned to : {1, 4})
    checkCast<arith::TruncIOp>(5, to);
  for (unsigned width : {1, 4, 32, 64}) {
    if (width < 32) {
      checkCast<arith::IndexCastOp>(width, 0);
      checkCast<arith::IndexCastUIOp>(width, 0);
    }
    checkCast<arith::IndexCastOp>(0, width);
    checkCast<arith::IndexCastUIOp>(0, width);
  }
}

TEST(IdRanges, SelectHasTheRangeOfTheTakenBranch) {
  Subject subject({1, 4, 4}, [](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::SelectOp::create(b, loc, x[0], x[1], x[2]);
  });
  for (IntegerRange a : allIntervals())
    for (IntegerRange b : allIntervals()) {
      IntegerRange both = subject.find({{0, 1}, a, b});
      EXPECT_EQ(both.lo, std::min(a.lo, b.lo));
      EXPECT_EQ(both.hi, std::max(a.hi, b.hi));
      EXPECT_EQ(text(subject.find({{1, 1}, a, b})), text(a));
      EXPECT_EQ(text(subject.find({{0, 0}, a, b})), text(b));
    }
}

/// Tests a select of x + c or x + d by a comparison of x + e with f, for all 4-bit values of x in
/// all intervals. The result must be in the union of intervals that IdRanges finds, even if it
/// wraps.
TEST(IdRanges, BranchHasTheValuesOfItsCondition) {
  int numTighter = 0;
  for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i)
    for (int64_t c : {0, 3, -2})
      for (int64_t e : {0, 2, -3})
        for (int64_t f : {-8, -3, 0, 2, 7}) {
          auto build = [&](OpBuilder &b, Location loc, Value x, Value &condition) -> Value {
            auto add = [&](int64_t by) -> Value {
              Value constant = arith::ConstantOp::create(b, loc, b.getIntegerAttr(x.getType(), by));
              return arith::AddIOp::create(b, loc, x, constant);
            };
            Value bound = arith::ConstantOp::create(b, loc, b.getIntegerAttr(x.getType(), f));
            condition =
                arith::CmpIOp::create(b, loc, static_cast<arith::CmpIPredicate>(i), add(e), bound);
            return arith::SelectOp::create(b, loc, condition, add(c), x);
          };
          MLIRContext context;
          context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                              tensor::TensorDialect>();
          OpBuilder b(&context);
          Location loc = UnknownLoc::get(&context);
          OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
          b.setInsertionPointToStart(module->getBody());
          Type tensor = RankedTensorType::get({2}, b.getIntegerType(4));
          auto function = func::FuncOp::create(b, loc, "f", b.getFunctionType({tensor}, {}));
          Block *block = function.addEntryBlock();
          b.setInsertionPointToStart(block);
          Value result, condition;
          SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(1));
          Value empty = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{2}, b.getIntegerType(4));
          linalg::GenericOp::create(b, loc, TypeRange(tensor), block->getArgument(0), empty, maps,
                                    utils::IteratorType::parallel,
                                    [&](OpBuilder &inner, Location at, ValueRange args) {
                                      result = build(inner, at, args[0], condition);
                                      linalg::YieldOp::create(inner, at, result);
                                    });
          auto wrap = [](int64_t x) { return ((x + 8) & 15) - 8; };
          for (IntegerRange a : allIntervals()) {
            IdRanges ranges;
            ranges.assume(block->getArgument(0), a);
            IdSet set = ranges.getSet(result);
            for (int64_t x = a.lo; x <= a.hi; ++x) {
              bool holds = arith::applyCmpPredicate(static_cast<arith::CmpIPredicate>(i),
                                                    APInt(4, wrap(x + e), true), APInt(4, f, true));
              int64_t value = holds ? wrap(x + c) : x;
              ASSERT_TRUE(llvm::any_of(set,
                                       [&](IntegerRange part) {
                                         return IntegerRange::of(value).within(part.lo, part.hi);
                                       }))
                  << "predicate " << i << ", x = " << x << " of " << text(a) << ", c = " << c
                  << ", e = " << e << ", f = " << f;
            }
            numTighter += set.front().lo > a.lo || set.back().hi < a.hi || set.size() > 1;
          }
        }
  EXPECT_GT(numTighter, 1000) << "conditions are used";
}

/// Tests that the interval of a reduction has all values of its steps: a count, and the last or
/// greatest value.
TEST(IdRanges, ReductionHoldsAllValues) {
  auto check = [](int64_t steps,
                  llvm::function_ref<Value(OpBuilder &, Location, Value, Value)> build,
                  IntegerRange term, IntegerRange expected) {
    MLIRContext context;
    context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                        tensor::TensorDialect>();
    OpBuilder b(&context);
    Location loc = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    b.setInsertionPointToStart(module->getBody());
    Type scalar = RankedTensorType::get({}, b.getI64Type());
    auto function = func::FuncOp::create(
        b, loc, "f", b.getFunctionType({RankedTensorType::get({steps}, b.getI64Type())}, {}));
    Block *block = function.addEntryBlock();
    b.setInsertionPointToStart(block);
    Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    Value empty = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{}, b.getI64Type());
    Value start = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(1), AffineMap::get(1, 0, &context)};
    auto op = linalg::GenericOp::create(
        b, loc, TypeRange(scalar), block->getArgument(0), start, maps,
        utils::IteratorType::reduction, [&](OpBuilder &inner, Location at, ValueRange args) {
          linalg::YieldOp::create(inner, at, build(inner, at, args[0], args[1]));
        });
    IdRanges ranges;
    ranges.assume(block->getArgument(0), term);
    IntegerRange found = ranges.get(op.getResult(0));
    EXPECT_EQ(text(found), text(expected));
    EXPECT_EQ(text(ranges.get(op.getResult(0))), text(expected)) << "the second time";
  };
  auto sum = [](OpBuilder &b, Location loc, Value x, Value acc) -> Value {
    return arith::AddIOp::create(b, loc, acc, x);
  };
  auto largest = [](OpBuilder &b, Location loc, Value x, Value acc) -> Value {
    return arith::MaxSIOp::create(b, loc, acc, x);
  };
  auto twice = [](OpBuilder &b, Location loc, Value x, Value acc) -> Value {
    return arith::AddIOp::create(b, loc, acc, acc);
  };
  auto product = [](OpBuilder &b, Location loc, Value x, Value acc) -> Value {
    return arith::MulIOp::create(b, loc, acc, x);
  };
  auto grows = [](OpBuilder &b, Location loc, Value x, Value acc) -> Value {
    return arith::AddIOp::create(b, loc, acc, arith::AddIOp::create(b, loc, acc, x));
  };
  check(5, sum, {0, 1}, {0, 5});
  check(5, sum, {-2, 3}, {-10, 15});
  check(5, largest, {2, 9}, {0, 9});
  check(5, twice, {2, 9}, {0, 0});
  check(5, product, {2, 9}, {0, 0});
  check(5, grows, {0, 1}, IntegerRange()); // 2 s + x is not a count
  check(3, sum, {0, std::numeric_limits<int64_t>::max() / 2}, IntegerRange());
}

/// Tests values whose sum, difference, product or negation overflows 64 bits.
TEST(IdRanges, WrappingResultsAreUnknown) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                    most = std::numeric_limits<int64_t>::max();
  const int64_t values[] = {least, least + 1, -(int64_t(1) << 32), -2,       -1,  0,
                            1,     2,         int64_t(1) << 32,    most - 1, most};
  auto check = [&](Subject::Build build) {
    for (unsigned width : {64, 0}) {
      Subject subject({width, width}, build);
      for (int64_t lo : values)
        for (int64_t hi : values)
          for (int64_t y : values) {
            if (lo > hi)
              continue;
            IntegerRange found = subject.find({{lo, hi}, IntegerRange::of(y)});
            for (int64_t x : {lo, hi}) {
              std::optional<int64_t> value = subject.evaluate({x, y});
              EXPECT_TRUE(!value || IntegerRange::of(*value).within(found.lo, found.hi))
                  << text({lo, hi}) << " and " << y << " give " << *value << ", found "
                  << text(found);
            }
          }
    }
  };
  check([](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::AddIOp::create(b, loc, x[0], x[1]);
  });
  check([](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::SubIOp::create(b, loc, x[0], x[1]);
  });
  check([](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::MulIOp::create(b, loc, x[0], x[1]);
  });
  check([](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::DivSIOp::create(b, loc, x[0], x[1]);
  });
  check([](OpBuilder &b, Location loc, ValueRange x) -> Value {
    return arith::RemSIOp::create(b, loc, x[0], x[1]);
  });
}
