//===- SplitFactors.h - Exact products of f32 with wgmma --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_SPLITFACTORS_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_SPLITFACTORS_H

#include "Codegen/Gpu/Ptx/SplitProducts.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

class SplitFactors {
public:
  SplitFactors(Sm90Builder &b, const GpuPlan &plan) : b(b), plan(plan) {}

  /// Emits one splitting warp's share of the tile of rhs in the stage that begins at `stage`.
  void splitRhs(Value stage);
  /// Loads the words of the tile of lhs that the products of a stage need. `rows` is the address of
  /// the warpgroup's 64 rows, and `thread` the number of the thread in the warpgroup.
  SmallVector<Value> loadLhs(Value rows, Value thread);
  /// Starts the products of a stage. Calls `whenPreviousEnded` at the place where all products of
  /// the previous stage have ended.
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> words, Value stage,
                              function_ref<void()> whenPreviousEnded);

private:
  Sm90Builder &b;
  const GpuPlan &plan;
};

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_SPLITFACTORS_H
