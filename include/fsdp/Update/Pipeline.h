//===- Pipeline.h - The Update stage ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_UPDATE_PIPELINE_H
#define FSDP_UPDATE_PIPELINE_H

#include <string>

namespace mlir {
class OpPassManager;

namespace fsdp {

/// What a user says about the update. The passes report what is wrong with it.
struct UpdateOptions {
  std::string optimizer = "adamw";          ///< `--optimizer=adamw|sgd`
  double beta1 = 0.9;                       ///< `--beta1`
  double beta2 = 0.999;                     ///< `--beta2`
  double eps = 1e-8;                        ///< `--eps`
  double weightDecay = 0.01;                ///< `--weight-decay`
  double momentum = 0.0;                    ///< `--momentum`
  std::string stateDtype = "f32";           ///< `--optimizer-state-dtype`
  std::string stateRounding = "stochastic"; ///< `--optimizer-state-rounding`
  double clipGradNorm = 0.0;                ///< `--clip-grad-norm`; 0: off
  double gradPredivide = 1;                 ///< `--grad-predivide`
  std::string gradDivide = "average";       ///< `--grad-divide`
  std::string reduceDtype;                  ///< `--reduce-dtype`, to be held; empty: f32
  std::string
      lossScale; ///< `--loss-scale`: dynamic, or a number; empty: dynamic where there is a scale
  double lossScaleInit = 65536;           ///< `--loss-scale-init`
  int64_t lossScaleGrowthInterval = 2000; ///< `--loss-scale-growth-interval`
};

/// Gradients in, state form out; ends in `fsdp-verify-updated`.
void buildUpdatePipeline(OpPassManager &pm, const UpdateOptions &options);
/// `fsdp-update`, for fsdp-opt.
void registerUpdatePipeline();

} // namespace fsdp
} // namespace mlir

#endif // FSDP_UPDATE_PIPELINE_H
