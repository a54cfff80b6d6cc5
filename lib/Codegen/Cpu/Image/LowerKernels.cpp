//===- LowerKernels.cpp - Tensor kernels to phase functions -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the lowering of each kernel. A lowering either refuses a kernel or lowers it completely.
// The general lowering, LoopKernels.cpp, accepts every kernel that the other lowerings refuse:
//
//   attention                  -> tiles of scores                  Attention.cpp
//   a contraction              -> packed panels, register tiles    Gemm.cpp
//   maps, reductions, scatters -> nests of vector loops            NestKernels.cpp
//   any other kernel           -> plain loops                      LoopKernels.cpp
//
//===----------------------------------------------------------------------===//

#include "Codegen/Cpu/Attention/Attention.h"
#include "Codegen/Cpu/Gemm/Gemm.h"
#include "Codegen/Cpu/Nests/NestBuilder.h"
#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult fsdp::lowerKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info) {
  if (Operation *attention = findAttention(kernel, TargetInfo().getHeadAlignment()))
    return lowerAttentionKernel(kernel, attention, target, info);
  decomposeAttention(kernel);
  speculateBranches(kernel);
  if (handlesContractKernel(kernel, target))
    return lowerContractKernel(kernel, target, info);
  if (lowerNestKernel(kernel, target, info))
    return success();
  return lowerLoopKernel(kernel, info);
}

namespace {
struct LowerKernelsPass : fsdp::impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<CpuTarget> target = CpuTarget::get(targetCpu, module.getLoc());
    if (failed(target))
      return signalPassFailure();
    for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(kernelAttr))
        continue;
      KernelInfo info;
      if (failed(describeKernel(kernel, info)) || failed(verifyFloatContract(kernel)) ||
          failed(lowerKernel(kernel, *target, info)))
        return signalPassFailure();
      ++numKernels;
      numPhases += info.phases.size();
    }
  }
};
} // namespace
