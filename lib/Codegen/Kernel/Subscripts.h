//===- Subscripts.h - Index expressions with known ranges -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Affine index expressions over the surrounding loops, simplified with ranges of loop variables.
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

/// A sum of coefficient * atom plus a constant. An atom is a dim, a floordiv or a mod.
struct LinearForm {
  llvm::MapVector<AffineExpr, int64_t> terms;
  int64_t constant = 0;
};

/// Computes with index expressions, using the ranges of the dims. All values must be non-negative,
/// and all divisors positive constants.
class Subscripts {
public:
  explicit Subscripts(ArrayRef<LoopDim> dims) : dims(dims) {}

  /// Returns the range of the values of `expr`.
  IntegerRange range(AffineExpr expr) const;
  /// Returns an equal, simpler expression: removes quotients and remainders that the ranges of the
  /// dims determine, and replaces (x floordiv c) * c + x mod c by x.
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

/// Returns the indices of position `linear` in the row-major order of `shape`.
SmallVector<AffineExpr> delinearise(const Subscripts &subscripts, AffineExpr linear,
                                    ArrayRef<int64_t> shape);
/// Returns the row-major position of `indices` in `shape`.
AffineExpr linearise(const Subscripts &subscripts, ArrayRef<AffineExpr> indices,
                     ArrayRef<int64_t> shape, MLIRContext *context);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_SUBSCRIPTS_H
