//===- GemmProblem.h - What a contraction kernel computes -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The canonical form of a kernel with one linalg.contract. Its index space is a
// list of *digits*: the loop dimensions of the contraction, split where a reshape
// after it splits them. Every tensor that the kernel touches, through whatever
// views, is then a base, an offset and one stride per digit.
//
//   contract [b, t, n] += x[b, t, k] * w[n, k]      digits   b    t     n    k
//                                           x       strides  T·K  K     0    1
//                                           w                0    0     K    1
//   collapse [b·t, n], add bias[n], gelu    bias             0    0     1    0
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMPROBLEM_H
#define FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMPROBLEM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp::gemm {

/// How the elements of a tensor come out of a binding: element (i0, i1, ..) is
/// maps(binding[offset + Σ i_d · dimStrides[d]]).
struct Access {
  int binding = -1; ///< argument of the kernel; -1: every element is `splat`
  TypedAttr splat;  ///< a scalar
  Type elementType; ///< in the binding, before the maps
  int64_t offset = 0;
  SmallVector<int64_t> dimStrides;    ///< of the traced tensor's dimensions
  SmallVector<linalg::LinalgOp> maps; ///< unary, applied in order
};

/// An access with its strides per digit, in elements.
struct Operand {
  Access access;
  SmallVector<int64_t> strides;

  /// The same elements in the same places.
  bool sameAs(const Operand &other) const;
};

enum class Role { Batch, M, N, K };

struct Digit {
  int64_t size;
  Role role;
};

/// An elementwise op after the contraction. Operand i of `op` is loads[loadOf[i]], or the
/// value of a tensor computed before (-1).
struct MapStep {
  linalg::LinalgOp op;
  SmallVector<int> loadOf;
  SmallVector<SmallVector<int64_t>> indexStrides; ///< linalg.index d = Σ digit · stride
};

struct StoreStep {
  Value value; ///< key of a computed tensor
  Operand dest;
};

struct Problem {
  linalg::ContractOp contract;
  SmallVector<Digit> digits; ///< of a role: outermost first; k in the order of the loops
  Operand lhs, rhs;          ///< rows (m) and columns (n) of the result
  Operand init;              ///< the value that accumulation starts from
  SmallVector<Operand> loads;
  SmallVector<MapStep> maps;
  SmallVector<StoreStep> stores;
  /// Views stand for the tensor they show.
  DenseMap<Value, Value> viewOf;

  Value root() const { return linalg::ContractOp(contract)->getResult(0); }
  Value key(Value v) const {
    auto it = viewOf.find(v);
    return it == viewOf.end() ? v : it->second;
  }
  /// Calls `fn` on the strides of everything that is indexed by digits.
  void forEachStrides(function_ref<void(SmallVector<int64_t> &)> fn);
  /// Digits of a role, outermost first.
  SmallVector<int> digitsOf(Role role) const;
};

/// Reads a kernel; fails, without a diagnostic, when it is none that this lowering takes.
FailureOr<Problem> analyse(func::FuncOp kernel);

/// Follows `value` (a tensor) up to an argument of the kernel or a splat.
FailureOr<Access> traceAccess(Value value);
/// Whether every op in the body maps element by element, so that it can be applied to vectors.
bool hasVectorBody(linalg::LinalgOp op);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMPROBLEM_H
