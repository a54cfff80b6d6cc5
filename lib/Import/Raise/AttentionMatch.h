//===- AttentionMatch.h - Two products around a softmax ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_ATTENTIONMATCH_H
#define FSDP_LIB_IMPORT_ATTENTIONMATCH_H

#include "Structure/LoopParts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fsdp {

/// Reason why a softmax between two products is not attention, and the op that prevents it.
struct Obstacle {
  std::string reason;
  Operation *at = nullptr;
};

/// An extra column of a softmax, besides the scores of the keys (AttentionSink.cpp).
struct Sink {
  tensor::ConcatOp concat;      // op that joins the scores and the sink
  tensor::ExtractSliceOp slice; // slice that drops the weight of the sink
  unsigned scores = 0;          // index of the operand of `concat` with the scores
};

/// A match of g(softmax(f(scale · Q·Kᵀ))) · V, where g multiplies the weights by factors. The match
/// does not depend on the division into loops, views and copies, because positions are functions of
/// loop parts (LoopParts.h).
struct AttentionMatch {
  explicit AttentionMatch(MLIRContext *context) : parts(context) {}

  LoopParts parts;
  linalg::SoftmaxOp softmax;
  linalg::LinalgOp mixing;  // product with V
  linalg::LinalgOp scoring; // product of Q and K

  Point q, k, v;
  double scale = 1;          // product of the constant factors of Q and K
  Point formula;             // input of the softmax, without the sink
  std::optional<Point> sink; // score of the sink
  Point score;               // element of `scoring` that the formula reads
  bool hasGuard = false;     // whether the model selects 0 for rows of -inf

  /// A change of the weights between softmax and product: a factor, a divisor, or a condition that
  /// keeps (drops) a weight. A weight that is not kept becomes 0.
  struct Factor {
    enum Kind { Multiplies, Divides, Keeps, Drops } kind;
    Point value;
  };
  SmallVector<Factor> factors;

  /// Loop parts, outermost first. All tensors have the parts of `batch`. Q alone has the parts of
  /// `group` (the query heads of a kv head). `depth` is the head dimension of Q and K, and `width`
  /// is the head dimension of V.
  SmallVector<unsigned> batch, group, rows, keys, depth, width;
};

/// Matches attention around a softmax. On failure sets `obstacle`, unless the softmax is not
/// between two products.
std::optional<AttentionMatch> matchAttention(linalg::SoftmaxOp softmax, Obstacle &obstacle);

/// Matches a sink. Returns nothing if the softmax is over the keys alone. If the input has other
/// columns that the product with V does not read, sets `obstacle` and returns nothing.
std::optional<Sink> matchSink(linalg::SoftmaxOp softmax, Obstacle &obstacle);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ATTENTIONMATCH_H
