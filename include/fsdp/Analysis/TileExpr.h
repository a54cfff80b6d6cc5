//===- TileExpr.h - Integers that depend on a tile --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Represents bounds of the loops of a tiled kernel as small trees, which can be evaluated, printed
// and emitted as index arithmetic:
//
//   max(0, q0 - 255)
//
// Trees are simplified as they are built. Sums have distinct terms. A minimum or maximum drops an
// operand that provably never decides the result. Every tree stores the range of its values. A tree
// that could overflow is null, and so is every tree that contains it.
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

/// Values of the symbols of a tree: integers for evaluate(), index values for emit().
template <typename T>
struct TileSymbols {
  /// The tile [begin, end). The last tile ends at the extent of its dimension.
  T begin, end;
  T batch, head;
  /// Maps a value of the region that depends on neither row nor column to an integer or an index
  /// value. Called only for TileExpr::Scalar.
  llvm::function_ref<T(Value)> scalar = nullptr;
};

class TileExpr {
public:
  /// Row and Column occur only while a mask is read, and never in the resulting bounds.
  enum class Symbol { Begin, End, Batch, Head, Row, Column };
  enum class Kind { Constant, Symbol, Scalar, Opaque, Sum, FloorDiv, Min, Max, Choose };

  /// Values are within ±limit; a scalar from memory beyond ±far is clamped to ±far.
  static constexpr int64_t limit = int64_t(1) << 60, far = int64_t(1) << 40;

  /// Creates the null tree: a value that is not known.
  TileExpr() = default;
  static TileExpr constant(int64_t value);
  static TileExpr symbol(Symbol symbol, IntegerRange range);
  /// Returns the tree of a region's value that depends on neither row nor column.
  static TileExpr scalar(Value value, IntegerRange range);
  /// Returns the tree of any other value of a region, of which only the range is known.
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
  /// Returns the value of a scalar or an opaque tree.
  Value value() const;
  /// Return the terms and offset of a sum Σ factor · term + offset. Other trees are sums of one
  /// term.
  struct Term;
  SmallVector<Term, 4> terms() const;
  int64_t offset() const;
  /// Returns the operands of FloorDiv, Min and Max. For Choose, returns condition, yes, no.
  ArrayRef<TileExpr> operands() const;
  int64_t divisor() const;

  bool contains(llvm::function_ref<bool(TileExpr)> predicate) const;
  /// Returns true if the value depends only on begin and end of the tile.
  bool isPositional() const;

  int64_t evaluate(const TileSymbols<int64_t> &symbols) const;
  Value emit(OpBuilder &b, Location loc, const TileSymbols<Value> &symbols) const;
  /// Prints the tree. `tile` is the letter of the tile's bounds: "q" for q0 and q1.
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
