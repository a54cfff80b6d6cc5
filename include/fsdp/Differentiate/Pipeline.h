//===- Pipeline.h - The stage Differentiate ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIFFERENTIATE_PIPELINE_H
#define FSDP_DIFFERENTIATE_PIPELINE_H

#include <string>

namespace mlir {
class OpPassManager;
namespace fsdp {

struct DifferentiateOptions {
  /// Type in which gradients cross ranks (f32, f64, bf16, f16); empty: f32, f64 in f64.
  double gradPredivide = 1; ///< `--grad-predivide`
  std::string reduceDtype;
  /// Gradients are multiplied by a scale, an argument of the program: on, off, or auto (where there
  /// is f16).
  std::string lossScale = "auto";
  /// Batches in which more targets count weigh more (`--grad-divide=tokens`).
  bool weighLoss = false;
  /// Recompute cheap maps in the backward rather than save them.
  bool cloneCheapForward = true;
};

/// Sharded forward → joint graph (docs/Pipeline.md, section 3).
void buildDifferentiatePipeline(OpPassManager &pm, const DifferentiateOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_DIFFERENTIATE_PIPELINE_H
