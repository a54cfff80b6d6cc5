//===- TileExpr.h - Integers that depend on a tile --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Represents loop bounds of a tiled kernel as small expression trees. A tree can be evaluated on
// integers, printed, or emitted as index arithmetic:
//
//   max(0, q0 - 255)
//
// The functions that create trees simplify them. All terms of a sum are different from each other.
// A minimum or maximum is replaced by one of its operands if the other operand can provably never
// be the result. Every tree stores the range of its values. If a computation could overflow, or if
// an operand is null, the result is the null tree.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_TILEEXPR_H
#define FSDP_ANALYSIS_TILEEXPR_H

#include "fsdp/Analysis/IntegerRange.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>
#include <optional>

namespace mlir::fsdp {

/// Values of the symbols of a tree. T is int64_t for evaluate(), and Value (of type index) for
/// emit().
template <typename T>
struct TileSymbols {
  /// The tile [begin, end). The last tile ends at the extent of its dimension.
  T begin, end;
  T batch, head;
  /// Maps a value of the attention region that depends on neither row nor column to a T. This
  /// function is called only for trees of the kind Scalar.
  llvm::function_ref<T(Value)> scalar = nullptr;
};

class TileExpr {
public:
  /// Row and Column occur only in formulas of a mask, never in loop bounds.
  enum class Symbol { Begin, End, Batch, Head, Row, Column };
  enum class Kind { Constant, Symbol, Scalar, Opaque, Sum, FloorDiv, Min, Max, Choose };

  /// Every value of a tree is in [-limit, limit]. A scalar that the kernel reads from memory is
  /// clamped to [-far, far].
  static constexpr int64_t limit = int64_t(1) << 60, far = int64_t(1) << 40;

  /// Creates the null tree, which stands for an unknown value.
  TileExpr() = default;
  static TileExpr constant(int64_t value);
  static TileExpr symbol(Symbol symbol, IntegerRange range);
  /// Returns a tree that represents a value of the region that depends on neither row nor column.
  static TileExpr scalar(Value value, IntegerRange range);
  /// Returns a tree that represents a value of the region if only the range of the value is known.
  static TileExpr opaque(Value value, IntegerRange range);
  /// Returns the tree of `condition >= 0 ? yes : no`.
  static TileExpr choose(TileExpr condition, TileExpr yes, TileExpr no);
  static TileExpr min(TileExpr a, TileExpr b);
  static TileExpr max(TileExpr a, TileExpr b);
  TileExpr floorDiv(int64_t divisor) const; // divisor > 0
  TileExpr ceilDiv(int64_t divisor) const;

  explicit operator bool() const { return node != nullptr; }
  Kind kind() const;
  IntegerRange range() const;
  std::optional<int64_t> asConstant() const;
  Symbol asSymbol() const;
  /// Returns the value of the region that a Scalar or Opaque tree represents.
  Value value() const;
  /// Return the terms and the offset of a sum Σ factor · term + offset. A constant counts as a sum
  /// without terms. Any other tree counts as a sum of one term.
  struct Term;
  SmallVector<Term, 4> terms() const;
  int64_t offset() const;
  /// Returns the operands of a tree of the kind FloorDiv, Min or Max. For the kind Choose, returns
  /// the condition, `yes` and `no`.
  ArrayRef<TileExpr> operands() const;
  int64_t divisor() const;

  bool contains(llvm::function_ref<bool(TileExpr)> predicate) const;
  /// Returns true if the value of the tree depends only on the bounds of the tile.
  bool isPositional() const;

  int64_t evaluate(const TileSymbols<int64_t> &symbols) const;
  Value emit(OpBuilder &b, Location loc, const TileSymbols<Value> &symbols) const;
  /// Prints the tree. `tile` is the letter with which the bounds of the tile are printed, for
  /// example "q" for q0 and q1.
  void print(raw_ostream &os, StringRef tile) const;

  friend TileExpr operator+(TileExpr a, TileExpr b);
  friend TileExpr operator-(TileExpr a, TileExpr b) { return a + b * -1; }
  friend TileExpr operator*(TileExpr a, int64_t factor);
  friend TileExpr operator+(TileExpr a, int64_t b) { return a + constant(b); }
  friend bool operator==(const TileExpr &a, const TileExpr &b);
  friend bool operator!=(const TileExpr &a, const TileExpr &b) { return !(a == b); }

private:
  struct Node;
  static TileExpr make(Node node);
  static TileExpr sum(int64_t offset, SmallVector<Term, 4> terms);
  static TileExpr extremum(Kind kind, TileExpr a, TileExpr b);

  std::shared_ptr<const Node> node;
};

struct TileExpr::Term {
  int64_t factor;
  TileExpr expr;
};

/// Returns true if a >= b provably holds for all values of the symbols.
bool isAtLeast(TileExpr a, TileExpr b);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_TILEEXPR_H
