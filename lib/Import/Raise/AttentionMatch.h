//===- AttentionMatch.h - Two products around a softmax ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_ATTENTIONMATCH_H
#define FSDP_LIB_IMPORT_ATTENTIONMATCH_H

#include "Structure/LoopParts.h"

namespace mlir::fsdp {

/// Why something is not attention, and the op that is in the way.
struct Obstacle {
  std::string reason;
  Operation *at = nullptr;
};

/// g(softmax(f(scale · Q·Kᵀ))) · V, g being factors, whichever way it is cut into loops, views and
/// copies. Places are over parts of loops (LoopParts.h), which fall into groups.
struct AttentionMatch {
  explicit AttentionMatch(MLIRContext *context) : parts(context) {}

  LoopParts parts;
  linalg::SoftmaxOp softmax;
  linalg::LinalgOp mixing;  // the product with V
  linalg::LinalgOp scoring; // the product of Q and K

  Point q, k, v;
  double scale = 1;      // taken off Q and K
  Point formula;         // what goes into the softmax
  Point score;           // where it reads the product
  bool hasGuard = false; // rows of -inf give 0

  /// What the weights are changed by between softmax and product: a factor, a divisor, or a
  /// condition that keeps them (drops them) and else gives 0.
  struct Factor {
    enum Kind { Multiplies, Divides, Keeps, Drops } kind;
    Point value;
  };
  SmallVector<Factor> factors;

  /// Parts, outermost first: in everything; in Q only (query heads of a kv head); rows; keys; head
  /// dimensions.
  SmallVector<unsigned> batch, group, rows, keys, depth, width;
};

/// Softmaxes between products. Nothing and no obstacle: this is something else.
std::optional<AttentionMatch> matchAttention(linalg::SoftmaxOp softmax, Obstacle &obstacle);

/// Whether the formula of a value leads to `target` through elementwise ops and views.
bool leadsTo(Value value, Operation *target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_ATTENTIONMATCH_H
