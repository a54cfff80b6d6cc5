//===- Sm80Backward.h - Gradients of attention on mma.sync ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H

#include "Sm80Blocks.h"
#include "Sm80Captures.h"

namespace mlir::fsdp::attention {

/// How dK and dV are cut for wgmma: `groups` warpgroups have 64 keys each, besides one that copies,
/// and meet blocks of `blockQueries` queries.
struct Sm90Keys {
  int64_t groups, blockQueries;
  int64_t tileQueries; ///< whose scores stand in registers together: 64 or all of them
  bool addsToQ;        ///< dQ comes from the same kernel

  int64_t blockKeys() const { return 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
};

/// What the kernels of the backward are, and where they meet in scratch: f32 for each query of all
/// heads.
struct Sm80Backward {
  Sm80Config queries;                   ///< rows are queries
  SmallVector<Sm80Config> keys;         ///< rows are keys: one for both gradients, or one for each
  std::optional<Sm90Keys> keysOfGroups; ///< instead, where the chip has wgmma
  int64_t lse = 0, delta = 0, scratchBytes = 0;
  /// Where keysOfGroups adds to dQ: how often it has been added to each block of queries (i32), and
  /// sums.
  int64_t added = 0, querySums = 0;
  int64_t rowStride = 0; ///< from head to head: at least as many as there are queries

  void placeNorms(const Shape &shape, int64_t stride);
};
std::optional<Sm80Backward> chooseBackward(const Shape &shape, Type element,
                                           const GpuTarget &target);
Sm80Needs queryNeeds(const Sm80Config &config, const Shape &shape, Type element);
Sm80Needs keyNeeds(const Sm80Config &config, const Shape &shape, Type element, bool wantsK,
                   bool wantsV);

/// A query, as a lane knows it.
struct Query {
  Value number; ///< one that exists
  Value exists; ///< null where it is not asked
  Value lse, delta;
  FragmentFunction::Values score, mask, weight, grad;
};

/// A key, likewise.
struct Key {
  Value number, exists;
  FragmentFunction::Values score, mask, weight, grad;
};

/// The functions of scores of a head, and what they make of a score and its cotangent.
class ScoreGradients {
public:
  ScoreGradients(GpuBuilder &b, AttentionGradOp op, const Shape &shape, const Head &head);

  Query query(Value number, Value exists, Value lse, Value delta) const;
  Key key(Value number, Value exists) const;
  /// Called with what gives values of score_grad at an element, and whether that is kept (or null).
  using Contribute =
      function_ref<void(ValueAt, const tile::Site &, FragmentFunction::Values &, Value)>;
  /// weight_mod · P, and dS, of x = q · k and dp = dO · v. `masked`: whether the pair may be left
  /// out for another reason than that the key does not exist.
  std::pair<Value, Value> emit(Value x, Value dp, const Query &query, const Key &key, bool masked,
                               Contribute contribute = nullptr) const;

  FragmentFunction score, mask, weight, grad;

private:
  Value kept(const Query &query, const Key &key, bool masked) const;
  Value weightOf(Value x, const Query &query, const Key &key, Value keep) const;

  GpuBuilder &b;
  double scale;
};

/// What an entry of the backward is made from.
struct Sm80Problem {
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
};
/// dQ, and for the others lse and delta of each query; or with `tables` nothing but what goes into
/// tables of captured tensors.
void emitQueryGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, bool tables);
/// dK, dV, or both.
void emitKeyGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
                      bool wantsK, bool wantsV);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
