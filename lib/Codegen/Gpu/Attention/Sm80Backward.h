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

/// The tiling of the kernel with wgmma that computes dK and dV. `groups` warpgroups own 64 keys
/// each, and one more warpgroup copies tiles. All warpgroups visit blocks of `blockQueries`
/// queries.
struct Sm90Keys {
  int64_t groups, blockQueries;
  int64_t tileQueries; ///< number of queries whose scores are in registers at once
  bool addsToQ;        ///< true if the kernel also computes the sums of dQ
  /// True if two warpgroups own the same 64 keys. Each computes the scores of `tileQueries` queries
  /// of a block. The first one sums dV, and the second one sums dK.
  bool sharesKeys = false;
  int64_t doutStages = 2; ///< number of buffers for dO
  int64_t rowSums = 0;    ///< number of contributions that are summed by query
  bool tables = false;    ///< true if the kernel only adds contributions to tables

  int64_t blockKeys() const { return sharesKeys ? 64 : 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
  int64_t consumerWarps() const { return 4 * groups; }
};

/// Passes over the scores. Forward, Queries and Tables own blocks of queries, the others blocks of
/// keys, for both gradients or one of them. Tables adds contributions to tables; with wgmma, it
/// owns blocks of keys.
enum class AttentionPass { Forward, Queries, Tables, Keys, KeysOfK, KeysOfV };

/// The tiling of a kernel with wgmma for gradients in f32. `groups` warpgroups own 64 rows each,
/// which are queries or keys, and visit blocks of `blockCols` of the other side.
struct Sm90Wide {
  AttentionPass pass; ///< any but Forward
  bool splits;        ///< true for exact products
  int64_t groups = 1, blockCols = 32;
  int64_t stages = 1; ///< number of buffers for blocks

  bool addsToTables() const { return pass == AttentionPass::Tables; }
  bool ownsKeys() const { return pass != AttentionPass::Queries && !addsToTables(); }
  /// Return true if the kernel computes dS, and if it sums dQ or dK, or dV.
  bool computesGradients() const { return pass != AttentionPass::KeysOfV; }
  bool sumsGradients() const { return computesGradients() && !addsToTables(); }
  bool sumsV() const { return pass == AttentionPass::Keys || pass == AttentionPass::KeysOfV; }
  int64_t blockRows() const { return 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
  int64_t consumerWarps() const { return 4 * groups; }
  int64_t parts() const { return splits ? 2 : 1; } ///< of a factor in shared memory
};

/// The kernels of the backward pass, and the offsets of the arrays in their common scratch, in
/// units of f32. The arrays `lse`, which is multiplied by log2(e), and `delta` have one f32 for
/// each query of all heads.
struct Sm80Backward {
  Sm80Config queries; ///< configuration of the kernel that owns queries
  /// Configurations of the kernels that own keys: one kernel for both dK and dV, or two kernels.
  SmallVector<Sm80Config> keys;
  /// Kernels with wgmma that are used instead of `keys` and, to add to tables, of `queries`.
  std::optional<Sm90Keys> keysOfGroups, tablesOfGroups;
  /// Kernels with wgmma in f32, for the passes that take fewer clocks than with `queries` and
  /// `keys`.
  std::optional<Sm90Wide> wideQueries, wideTables;
  SmallVector<Sm90Wide> wideKeys;
  KeyOrder order; ///< order of the blocks of keys; used only if keysOfGroups is set
  int64_t lse = 0, delta = 0, scratchBytes = 0;
  /// Offsets that are used if keysOfGroups adds to dQ. `added` is the offset of counts (i32): the
  /// counts tell how many blocks of keys have added to each block of queries. `querySums` is the
  /// offset of the sums of dQ.
  int64_t added = 0, querySums = 0;
  /// Offsets that are used if query heads are divided into parts. `addedParts` is the offset of
  /// counts (i32): for each block of keys, a count tells how many parts have added their sums.
  /// `keySums` is the offset of the sums of dK and dV.
  int64_t addedParts = 0, keySums = 0;
  /// Distance between the beginnings of two heads in the arrays `lse` and `delta`, in queries.
  int64_t rowStride = 0;

  void placeNorms(const Shape &shape, int64_t stride);
};
std::optional<Sm80Backward> chooseBackward(const Shape &shape, Type element,
                                           const GpuTarget &target);
Sm80Needs queryNeeds(const Sm80Config &config, const Shape &shape, Type element);
Sm80Needs keyNeeds(const Sm80Config &config, const Shape &shape, Type element, bool wantsK,
                   bool wantsV);

/// A query whose scores a lane computes.
struct Query {
  Value number;     ///< index of the query's row in the tensor
  Value exists;     ///< true if the query exists; null if no check is needed
  Value lse, delta; ///< lse is multiplied by log2(e)
  FragmentFunction::Values score, mask, weight, grad;
};

/// A key whose scores a lane computes.
struct Key {
  Value number, exists;
  FragmentFunction::Values score, mask, weight, grad;
};

/// The score functions of one head. The function emit() uses them to compute weights and gradients.
class ScoreGradients {
public:
  ScoreGradients(GpuBuilder &b, AttentionGradOp op, const Shape &shape, const Head &head);

  Query query(Value number, Value exists, Value lse, Value delta) const;
  Key key(Value number, Value exists) const;
  /// Type of a callback that emits the contributions of an element of the scores. The arguments
  /// are, in order: a function that returns values of score_grad; the position of the element; the
  /// values computed so far; a condition, which is true if the element is not masked. The condition
  /// is null if no check is needed.
  using Contribute =
      function_ref<void(ValueAt, const tile::Site &, FragmentFunction::Values &, Value)>;
  /// Returns weight_mod · P and dS of an element, where x is q · k and dp is dO · v. The argument
  /// `masked` must be true if mask_mod may mask the element or if the query may not exist.
  /// `drawn` has values of random ops of weight_mod by SharedDraws.
  std::pair<Value, Value> emit(Value x, Value dp, const Query &query, const Key &key, bool masked,
                               const FragmentFunction::Values &drawn,
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

/// The data that all functions that emit the backward pass read.
struct Sm80Problem {
  const Sm80Backward &plan;
  const Shape &shape;
  AttentionGradOp op;
  func::FuncOp kernel;
  const Sm80Captures &captures;
};
/// Emits the code that computes dQ and stores lse and δ of each query for the other kernels. If
/// `tables` is true, the code only adds contributions to the tables of captured tensors.
void emitQueryGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, const QueryOrder &order,
                        bool tables);
/// Emits the code that computes dK (if `wantsK` is true) and dV (if `wantsV` is true).
void emitKeyGradients(tile::Sm80Tiles &b, const Sm80Problem &problem, const Sm80Config &config,
                      const KeyOrder &order, bool wantsK, bool wantsV);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_ATTENTION_SM80BACKWARD_H
