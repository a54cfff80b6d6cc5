//===- GemmProblem.h - Canonical form of a contraction kernel ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the canonical form of a kernel with one linalg.contract. The index space is a list of
// *digits*. A digit is a loop dimension of the contraction. If a reshape after the contraction
// splits the dimension, each part is a digit. Every tensor of the kernel, even a view, then has a
// base, an offset and one stride per digit.
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

/// Location of a tensor's elements in a binding. To compute element (i0, i1, ..) of the tensor,
/// apply `maps` to the element offset + Σ i_d · dimStrides[d] of the binding.
struct Access {
  int binding = -1; ///< index of the kernel argument; if -1, every element is `splat`
  TypedAttr splat;  ///< value of all elements if `binding` is -1
  Type elementType; ///< element type of the binding, before the maps
  int64_t offset = 0;
  SmallVector<int64_t> dimStrides;    ///< strides of the tensor's dimensions, in elements
  SmallVector<linalg::LinalgOp> maps; ///< unary ops, applied in order
};

/// An access, and the stride of the accessed tensor for each digit, in elements.
struct Operand {
  Access access;
  SmallVector<int64_t> strides;

  /// Returns true if the elements of both operands are at the same addresses, and neither operand
  /// has maps.
  bool sameAs(const Operand &other) const;
};

enum class Role { Batch, M, N, K };

struct Digit {
  int64_t size;
  Role role;
};

/// An elementwise op after the contraction. Operand i of `op` is loads[loadOf[i]] of the problem.
/// If loadOf[i] is -1, operand i is a tensor that was computed from the contraction, or the op does
/// not read it.
struct MapStep {
  linalg::LinalgOp op;
  SmallVector<int> loadOf;
  /// indexStrides[d] contains the strides of linalg.index d in `op`, one stride per digit.
  SmallVector<SmallVector<int64_t>> indexStrides;
};

struct StoreStep {
  Value value; ///< the stored tensor, or the viewed tensor if the kernel returns a view
  Operand dest;
};

/// The sum of a factor over all values of k, which is added to `init`.
struct FactorSum {
  bool ofLhs;
  Operand init, dest;
};

struct Problem {
  linalg::ContractOp contract;
  /// The digits of each role are in order, outermost first. The k digits are in loop order.
  SmallVector<Digit> digits;
  Operand lhs, rhs; ///< lhs has the rows (m) of the result, rhs has the columns (n)
  Operand init;     ///< initial value of the accumulation
  SmallVector<Operand> loads;
  SmallVector<MapStep> maps;
  SmallVector<StoreStep> stores;
  std::optional<FactorSum> factorSum;
  /// Maps the result of a view op to the tensor that it views.
  DenseMap<Value, Value> viewOf;

  /// Returns true if the accumulation starts at a constant instead of a tensor.
  bool startsAtConstant() const { return init.access.binding < 0 && init.access.maps.empty(); }
  Value root() const { return linalg::ContractOp(contract)->getResult(0); }
  Value key(Value v) const {
    auto it = viewOf.find(v);
    return it == viewOf.end() ? v : it->second;
  }
  /// Calls `fn` on the list of strides of every operand and of every linalg.index.
  void forEachStrides(function_ref<void(SmallVector<int64_t> &)> fn);
  /// Returns the digits of a role, outermost first.
  SmallVector<int> digitsOf(Role role) const;
};

/// Converts a kernel into its canonical form. Fails without a diagnostic if the lowering of
/// contractions does not support the kernel.
FailureOr<Problem> analyse(func::FuncOp kernel);

/// Follows the definition of a tensor through views and unary ops to a kernel argument or a splat.
/// Fails if the tensor has another source, or if strides cannot describe the views.
FailureOr<Access> traceAccess(Value value);
/// Returns true if every op in the body of `op` is elementwise. Such a body can be emitted on
/// vectors.
bool hasVectorBody(linalg::LinalgOp op);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_KERNEL_GEMM_GEMMPROBLEM_H
