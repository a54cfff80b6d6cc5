//===- Subscripts.h - Index expressions with known ranges -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes with affine index expressions over the surrounding loops. Uses the ranges of the loop
// variables to simplify the expressions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_SUBSCRIPTS_H
#define FSDP_LIB_CODEGEN_KERNEL_SUBSCRIPTS_H

#include "fsdp/Analysis/IntegerRange.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// A loop variable: its SSA value (null for the lane) and its inclusive range.
struct LoopDim {
  Value value;
  int64_t lo = 0, hi = 0;
};

/// A sum of terms and a constant. Each term is the product of a coefficient and an atom, which is a
/// dim, a floordiv or a mod.
struct LinearForm {
  llvm::MapVector<AffineExpr, int64_t> terms;
  int64_t constant = 0;
};

/// Computes with index expressions, using the ranges of the dims. The values of all expressions
/// must be non-negative, and all divisors must be positive constants.
class Subscripts {
public:
  explicit Subscripts(ArrayRef<LoopDim> dims) : dims(dims) {}

  /// Returns the range of the values of `expr`.
  IntegerRange range(AffineExpr expr) const;
  /// Returns an equal, but simpler expression. Removes quotients and remainders whose values follow
  /// from the ranges of the dims. Replaces (x floordiv c) * c + x mod c by x.
  AffineExpr simplify(AffineExpr expr) const;
  /// Returns the simplified expression as a sum of atoms.
  LinearForm linearise(AffineExpr expr) const;

  AffineExpr floorDiv(AffineExpr expr, int64_t divisor) const;
  AffineExpr mod(AffineExpr expr, int64_t divisor) const;

private:
  struct Grains {
    int64_t grain;
    LinearForm coarse, fine;
  };
  std::optional<Grains> peel(const LinearForm &form, int64_t divisor, MLIRContext *context) const;
  void accumulate(AffineExpr expr, int64_t factor, LinearForm &form) const;
  void recombine(LinearForm &form) const;
  AffineExpr toExpr(const LinearForm &form, MLIRContext *context) const;
  ArrayRef<LoopDim> dims;
};

/// Returns the indices of the element that is at position `linear` in a row-major tensor of shape
/// `shape`.
SmallVector<AffineExpr> delinearise(const Subscripts &subscripts, AffineExpr linear,
                                    ArrayRef<int64_t> shape);
/// Returns the position of the element at `indices` in a row-major tensor of shape `shape`.
AffineExpr linearise(const Subscripts &subscripts, ArrayRef<AffineExpr> indices,
                     ArrayRef<int64_t> shape, MLIRContext *context);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SUBSCRIPTS_H
