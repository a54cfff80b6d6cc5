//===- Sm80Backward.h - Backward pass with mma.sync -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H

#include "Sm80Blocks.h"
#include "Sm80Captures.h"
#include "fsdp/Analysis/Gpu/BlockOrder.h"

namespace mlir::fsdp::attention {

/// Tiling of dK and dV with wgmma: `groups` warpgroups own 64 keys each, one more copies.
/// They meet blocks of `blockQueries` queries.
struct Sm90Keys {
  int64_t groups, blockQueries;
  int64_t tileQueries; ///< queries whose scores are in registers together: 64 or all
  bool addsToQ;        ///< the kernel also computes the sums of dQ

  int64_t blockKeys() const { return 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
};

/// Kernels of the backward pass and their shared scratch, in units of f32. Each norm is one
/// f32 per query of all heads.
struct Sm80Backward {
  Sm80Config queries;                   ///< configuration with queries as rows
  SmallVector<Sm80Config> keys;         ///< keys as rows: one for both gradients, or one each
  std::optional<Sm90Keys> keysOfGroups; ///< replaces `keys` if the chip has wgmma
  QueryOrder queryOrder;                ///< of the blocks of `queries`
  KeyOrder order;                       ///< of the blocks of keysOfGroups
  int64_t lse = 0, delta = 0, scratchBytes = 0;
  /// With keysOfGroups->addsToQ: per block of queries an i32 count of the additions, and sums
  /// of dQ.
  int64_t added = 0, querySums = 0;
  /// With several parts: per block of keys an i32 count of the parts that have added their sums,
  /// and sums of dK and dV.
  int64_t addedParts = 0, keySums = 0;
  int64_t rowStride = 0; ///< distance between heads; at least the number of queries

  void placeNorms(const Shape &shape, int64_t stride);
};
std::optional<Sm80Backward> chooseBackward(const Shape &shape, Type element,
                                           const GpuTarget &target);
Sm80Needs queryNeeds(const Sm80Config &config, const Shape &shape, Type element);
Sm80Needs keyNeeds(const Sm80Config &config, const Shape &shape, Type element, bool wantsK,
                   bool wantsV);

/// A query, as a lane holds it.
struct Query {
  Value number; ///< row within the tensor
  Value exists; ///< null if it need not be checked
  Value lse, delta;
  FragmentFunction::Values score, mask, weight, grad;
};

/// A key, as a lane holds it.
struct Key {
  Value number, exists;
  FragmentFunction::Values score, mask, weight, grad;
};

/// The functions of scores of a head, and the weights and gradients that they give.
class ScoreGradients {
public:
  ScoreGradients(GpuBuilder &b, AttentionGradOp op, const Shape &shape, const Head &head);

  Query query(Value number, Value exists, Value lse, Value delta) const;
  Key key(Value number, Value exists) const;
  /// Called with a function that gives values of score_grad at an element, and the condition
  /// that keeps the element (or null).
  using Contribute =
      function_ref<void(ValueAt, const tile::Site &, FragmentFunction::Values &, Value)>;
  /// Returns weight_mod · P, and dS, for x = q · k and dp = dO · v. `masked`: whether the
  /// pair may be masked for another reason than a missing key.
  std::pair<Value, Value> emit(Value x, Value dp, const Query &query, const Key &key, bool masked,
                               Contribute contribute = nullptr) const;

  FragmentFunction score, mask, weight, grad;

private:
  Value kept(const Query &query, const Key &key, bool masked) const;
  Value weightOf(Value x, const Query &query, const Key &key, Value keep) const;

  GpuBuilder &b;
  double scale;
};

/// Context of an entry of the backward pass.
struct Sm80Problem {
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
};
/// Emits dQ, and stores lse and δ of each query for the other kernels. With `tables` it only
/// adds contributions to the tables of captured tensors.
void emitQueryGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, bool tables);
/// Emits dK, dV, or both.
void emitKeyGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
                      const KeyOrder &order, bool wantsK, bool wantsV);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
