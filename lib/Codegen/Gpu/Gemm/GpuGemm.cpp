//===- GpuGemm.cpp - Lowering of contraction kernels for GPUs ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the kernel of a contraction: the kernel with wgmma if tensor maps can copy the factors,
// otherwise the kernel with mma.
//
//===----------------------------------------------------------------------===//

#include "GpuGemm.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

std::optional<std::string> gemm::whyNoGpuGemm(func::FuncOp kernel, const GpuTarget &target) {
  FailureOr<Problem> problem = analyseTileable(kernel, /*allowsFactorSum=*/true);
  if (failed(problem))
    return std::string("contractions that cannot be computed tile by tile");
  std::string reason;
  if (failed(makeGpuPlan(*problem, kernel, target, reason)))
    return reason;
  return std::nullopt;
}

bool gemm::sumsFactor(func::FuncOp kernel, const GpuTarget &target) {
  if (target.gemm == GemmSource::CublasLt)
    return false;
  FailureOr<Problem> problem = analyseTileable(kernel, /*allowsFactorSum=*/true);
  std::string reason;
  // Without an epilogue, results may later overwrite only the initial values of sums.
  return succeeded(problem) && problem->factorSum && problem->maps.empty() &&
         succeeded(makeGpuPlan(*problem, kernel, target, reason));
}

LogicalResult gemm::lowerGpuGemm(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                                 GpuKernel &info) {
  FailureOr<Problem> problem = analyseTileable(kernel, /*allowsFactorSum=*/true);
  std::string reason;
  FailureOr<GpuPlan> plan = failed(problem) ? FailureOr<GpuPlan>(failure())
                                            : makeGpuPlan(*problem, kernel, target, reason);
  if (failed(plan))
    return kernel.emitError("expected a contraction that GPU kernels support, found ") << reason;
  info.roundsToTF32 = plan->element.isF32() && !plan->isSplit();
  if (info.roundsToTF32 && target.hasWarpgroups() && !plan->config.warpgroups)
    info.whyNoWarpgroups = whyNoWarpgroups(*problem, kernel, *plan, target);
  if (auto maps = makeTensorMaps(*problem, *plan))
    lowerSm90Gemm(kernel, *problem, *plan, *maps, entries, info);
  else
    lowerSm80Gemm(kernel, *problem, *plan, entries, info);
  return success();
}
