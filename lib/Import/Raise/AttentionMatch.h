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

/// Reason why a softmax between two products is not raised to attention, and the op responsible.
struct Obstacle {
  std::string reason;
  Operation *at = nullptr;
};

/// A sink: a column of the softmax's input besides the scores of the keys (AttentionSink.cpp).
struct Sink {
  tensor::ConcatOp concat;      // op that joins the scores and the sink
  tensor::ExtractSliceOp slice; // slice that drops the weight of the sink
  unsigned scores = 0;          // index of the operand of `concat` that holds the scores
};

/// A match of g(softmax(f(scale · Q·Kᵀ))) · V, where f is elementwise and g multiplies the weights
/// by factors. The match does not depend on the division into loops, views and copies, because
/// positions are functions of loop parts (LoopParts.h).
struct AttentionMatch {
  explicit AttentionMatch(MLIRContext *context) : parts(context) {}

  LoopParts parts;
  linalg::SoftmaxOp softmax;
  linalg::LinalgOp mixing;  // product with V
  linalg::LinalgOp scoring; // contraction of Q and K

  Point q, k, v;
  double scale = 1;          // constant by which Q and K are multiplied in total
  Point formula;             // input of the softmax, without the sink
  std::optional<Point> sink; // element that is the sink's score
  Point score;               // element of `scoring` that the formula reads
  bool hasGuard = false;     // whether the model selects 0 for rows whose scores are all -inf

  /// A change of the weights after the softmax: a factor, a divisor, a condition that keeps a
  /// weight, or a condition that drops it. A dropped weight becomes 0.
  struct Factor {
    enum Kind { Multiplies, Divides, Keeps, Drops } kind;
    Point value;
  };
  SmallVector<Factor> factors;

  /// Loop parts, outermost first. Q, K and V have the parts of `batch`. Q alone has the parts of
  /// `group` (the query heads of a kv head). `depth` is the head dimension of Q and K, and `width`
  /// is the head dimension of V.
  SmallVector<unsigned> batch, group, rows, keys, depth, width;
};

/// Matches attention around a softmax. On failure sets `obstacle`, unless the softmax is not
/// between two products.
std::optional<AttentionMatch> matchAttention(linalg::SoftmaxOp softmax, Obstacle &obstacle);

/// Matches a sink. Returns nothing if the softmax is over the keys alone. Sets `obstacle` and
/// returns nothing if the input has other columns than those of keys and a sink.
std::optional<Sink> matchSink(linalg::SoftmaxOp softmax, Obstacle &obstacle);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ATTENTIONMATCH_H
