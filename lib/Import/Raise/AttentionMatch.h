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

/// Reason why a softmax between two products cannot be raised to attention, and the op that
/// prevents it.
struct Obstacle {
  std::string reason;
  Operation *at = nullptr;
};

/// An additional column of the softmax's input that does not contain scores of a key
/// (AttentionSink.cpp).
struct Sink {
  tensor::ConcatOp concat;      // op that joins the scores and the sink
  tensor::ExtractSliceOp slice; // slice that drops the weight of the sink
  unsigned scores = 0;          // index of the operand of `concat` that holds the scores
};

/// A match of g(softmax(f(scale · Q·Kᵀ))) · V, where f is elementwise and g multiplies the weights
/// by factors. Any number of ops, views and copies may compute this formula, because the match
/// expresses positions as functions of loop parts (LoopParts.h).
struct AttentionMatch {
  explicit AttentionMatch(MLIRContext *context) : parts(context) {}

  LoopParts parts;
  linalg::SoftmaxOp softmax;
  linalg::LinalgOp mixing;  // product with V
  linalg::LinalgOp scoring; // contraction of Q and K

  Point q, k, v;
  double scale = 1;          // product of the constant factors of Q and K
  Point formula;             // input of the softmax, without the sink
  std::optional<Point> sink; // element of the tensor that holds the sink's score
  Point score;               // element of `scoring` that the formula reads
  bool hasGuard = false;     // whether the model selects 0 for rows whose scores are all -inf

  /// A change of the weights after the softmax. `value` is a factor, a divisor, a condition under
  /// which a weight is kept, or a condition under which a weight is dropped. A dropped weight
  /// becomes 0.
  struct Factor {
    enum Kind { Multiplies, Divides, Keeps, Drops } kind;
    Point value;
  };
  SmallVector<Factor> factors;

  /// Loop parts of each role, outermost first. The parts of `batch` index Q, K and V. The parts of
  /// `group` (the query heads of a kv head) index Q alone. `depth` is the head dimension of Q and
  /// K, and `width` is the head dimension of V.
  SmallVector<unsigned> batch, group, rows, keys, depth, width;
};

/// Matches attention around a softmax. If the softmax is between two products but does not match,
/// sets `obstacle`.
std::optional<AttentionMatch> matchAttention(linalg::SoftmaxOp softmax, Obstacle &obstacle);

/// Matches a sink in the input of a softmax. Returns nothing if each column of the input belongs to
/// a key. Sets `obstacle` and returns nothing if a column belongs to neither a key nor a sink.
std::optional<Sink> matchSink(linalg::SoftmaxOp softmax, Obstacle &obstacle);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ATTENTIONMATCH_H
