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

/// Tiling of dK and dV with wgmma. `groups` warpgroups own 64 keys each, and one more warpgroup
/// copies tiles. All warpgroups visit blocks of `blockQueries` queries.
struct Sm90Keys {
  int64_t groups, blockQueries;
  int64_t tileQueries; ///< number of queries whose scores are in registers at once
  bool addsToQ;        ///< true if the kernel also computes the sums of dQ

  int64_t blockKeys() const { return 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
};

/// Kernels of the backward pass and offsets in their shared scratch, in units of f32. `lse`, which
/// is multiplied by log2(e), and `delta` have one f32 per query of all heads.
struct Sm80Backward {
  Sm80Config queries;                   ///< configuration with queries as rows
  SmallVector<Sm80Config> keys;         ///< keys as rows: one kernel for dK and dV, or two kernels
  std::optional<Sm90Keys> keysOfGroups; ///< replaces `keys` if the chip has wgmma
  QueryOrder queryOrder;                ///< of the blocks of `queries`
  KeyOrder order;                       ///< of the blocks of keysOfGroups
  int64_t lse = 0, delta = 0, scratchBytes = 0;
  /// Offsets if keysOfGroups adds to dQ: of an i32 count of additions per block of queries, and of
  /// the sums of dQ.
  int64_t added = 0, querySums = 0;
  /// Offsets if query heads are divided into parts: of an i32 count, per block of keys, of the
  /// parts that have added their sums, and of the sums of dK and dV.
  int64_t addedParts = 0, keySums = 0;
  int64_t rowStride = 0; ///< distance between heads in `lse` and `delta`, in queries

  void placeNorms(const Shape &shape, int64_t stride);
};
std::optional<Sm80Backward> chooseBackward(const Shape &shape, Type element,
                                           const GpuTarget &target);
Sm80Needs queryNeeds(const Sm80Config &config, const Shape &shape, Type element);
Sm80Needs keyNeeds(const Sm80Config &config, const Shape &shape, Type element, bool wantsK,
                   bool wantsV);

/// A query whose scores a lane computes.
struct Query {
  Value number;     ///< row in the tensor
  Value exists;     ///< null if it need not be checked
  Value lse, delta; ///< lse: times log2(e)
  FragmentFunction::Values score, mask, weight, grad;
};

/// A key whose scores a lane computes.
struct Key {
  Value number, exists;
  FragmentFunction::Values score, mask, weight, grad;
};

/// The score functions of a head. emit() computes weights and gradients with these functions.
class ScoreGradients {
public:
  ScoreGradients(GpuBuilder &b, AttentionGradOp op, const Shape &shape, const Head &head);

  Query query(Value number, Value exists, Value lse, Value delta) const;
  Key key(Value number, Value exists) const;
  /// Callback for the contributions of a score element. The arguments are a function that returns
  /// values of score_grad, the element's position, the values computed so far, and the condition
  /// that the element is not masked (or null).
  using Contribute =
      function_ref<void(ValueAt, const tile::Site &, FragmentFunction::Values &, Value)>;
  /// Returns weight_mod · P, and dS, for x = q · k and dp = dO · v. `masked` means that the pair
  /// may be masked for a reason other than a missing key.
  std::pair<Value, Value> emit(Value x, Value dp, const Query &query, const Key &key, bool masked,
                               Contribute contribute = nullptr) const;

  /// Returns true if dS is P · (dp - δ), so that P needs no dp.
  bool isPlain() const { return score.empty() && weight.empty(); }
  /// Returns P of a plain element.
  Value weigh(Value x, const Query &query, const Key &key, bool masked) const {
    return weightOf(x, query, key, kept(query, key, masked));
  }

  FragmentFunction score, mask, weight, grad;

private:
  Value kept(const Query &query, const Key &key, bool masked) const;
  Value weightOf(Value x, const Query &query, const Key &key, Value keep) const;

  GpuBuilder &b;
  double scale;
};

/// State that all emitters of the backward pass share.
struct Sm80Problem {
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
};
/// Emits dQ, and stores lse and δ of each query for the other kernels. If `tables` is true, only
/// adds contributions to the tables of captured tensors.
void emitQueryGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, bool tables);
/// Emits dK if `wantsK` is true, and dV if `wantsV` is true.
void emitKeyGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
                      const KeyOrder &order, bool wantsK, bool wantsV);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
