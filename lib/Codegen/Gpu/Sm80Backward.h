//===- Sm80Backward.h - Gradients of attention on mma.sync ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_SM80BACKWARD_H
#define FSDP_LIB_CODEGEN_GPU_SM80BACKWARD_H

#include "Sm80Blocks.h"

namespace mlir::fsdp::attention {

/// What the kernels of the backward are, and where they meet in scratch: f32 for each query of all heads.
struct Sm80Backward {
  Sm80Config queries;             ///< rows are queries
  SmallVector<Sm80Config> keys;   ///< rows are keys: one for both gradients, or one for each
  int64_t lse = 0, delta = 0, scratchBytes = 0;
};
std::optional<Sm80Backward> chooseBackward(const Shape &shape, Type element, const GpuTarget &target);
Sm80Needs queryNeeds(const Sm80Config &config, const Shape &shape, Type element);
Sm80Needs keyNeeds(const Sm80Config &config, const Shape &shape, Type element, bool wantsK, bool wantsV);

/// A query, as a lane knows it.
struct Query {
  Value number;   ///< one that exists
  Value exists;   ///< null where it is not asked
  Value lse, delta;
  FragmentFunction::Values score, mask, weight, grad;
};

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
  /// weight_mod · P, and dS, of x = q · k and dp = dO · v. `masked`: whether the pair may be left out.
  std::pair<Value, Value> emit(Value x, Value dp, const Query &query, const Key &key, bool masked) const;

  FragmentFunction score, mask, weight, grad;

private:
  Value kept(const Query &query, const Key &key) const;
  Value weightOf(Value x, const Query &query, const Key &key, Value keep) const;

  GpuBuilder &b;
  double scale;
};

/// dQ, and for the others lse and delta of each query.
void emitQueryGradients(tile::Sm80Tiles &b, const Sm80Backward &plan, const Shape &shape, AttentionGradOp op,
                        func::FuncOp kernel);
/// dK, dV, or both.
void emitKeyGradients(tile::Sm80Tiles &b, const Sm80Backward &plan, const Sm80Config &config, const Shape &shape,
                      AttentionGradOp op, func::FuncOp kernel, bool wantsK, bool wantsV);

LogicalResult lowerSm80Backward(func::FuncOp kernel, AttentionGradOp op, const GpuTarget &target, ModuleOp entries,
                                GpuKernel &info);

} // namespace mlir::fsdp::attention

#endif // FSDP_LIB_CODEGEN_GPU_SM80BACKWARD_H
