//===- CompileKernels.cpp - Compiles the kernels of a plan ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Compile the kernels of the module for the target that the options name. If no code is wanted,
//     only compute the kernels' scratch sizes.
//  2. Keep the image for the stage Package. Record the scratch size of each kernel in the module,
//     where the pass fsdp-add-workspace reads it.
//
// Only this file lists the targets. Other stages read the properties of a target from TargetInfo.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "fsdp/Codegen/KernelCache.h"
#include "fsdp/Codegen/Passes.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_COMPILEKERNELSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Properties of a CPU that multiplies bf16 matrices with AMX tiles. Logits are computed in chunks
/// of rows. Each chunk reads and writes the gradient of the logits' weight. With chunks of the
/// usual size, these accesses take longer than the products. The chunks are therefore larger than
/// on other CPUs. Rows begin at cache lines, so that kernels can write them with streaming stores.
struct TileCpuInfo : TargetInfo {
  ChunkLimits getChunkLimits() const override { return {256 << 20, 16}; }
  RowAlignment getRowAlignment() const override { return {64, false}; }
};
} // namespace

static std::unique_ptr<TargetInfo> createCpuTargetInfo(const CodegenOptions &options) {
  if (!options.isForCpu())
    return nullptr;
  std::string why;
  // An unknown CPU name is not reported here, because compileForCpu() reports it.
  std::optional<CpuTarget> target = CpuTarget::find(options.targetCpu, why);
  if (target && target->usesTiles())
    return std::make_unique<TileCpuInfo>();
  return std::make_unique<TargetInfo>();
}

void fsdp::registerTargets() {
  registerTarget(createCpuTargetInfo, "cpu, reference");
  registerTarget(createGpuTargetInfo, "sm_80, sm_90a or sm_100a");
}

/// Compiles the kernels for a CPU.
static FailureOr<CompiledKernels> compileForCpu(ModuleOp planned, const CodegenOptions &options,
                                                bool code, bool timing) {
  FailureOr<CpuTarget> target = CpuTarget::get(options.targetCpu, planned.getLoc());
  if (failed(target))
    return failure();
  std::unique_ptr<KernelCache> cache;
  if (code && !options.kernelCache.empty()) {
    FailureOr<std::unique_ptr<KernelCache>> opened =
        KernelCache::open(options.kernelCache, planned.getLoc());
    if (failed(opened))
      return failure();
    cache = std::move(*opened);
  }
  FailureOr<Image> image =
      options.target == "reference"
          ? compileReferenceImage(planned, *target, /*widen=*/true, cache.get())
      : code ? compileCpuImage(planned, *target, cache.get())
             : measureCpuKernels(planned, *target);
  if (failed(image))
    return failure();
  if (timing && cache)
    llvm::errs() << "kernel cache " << options.kernelCache << ": " << cache->numFound() << " of "
                 << cache->numAsked() << " kernels reused\n";
  return CompiledKernels{std::move(*image), {}};
}

namespace {
class CompileKernelsPass : public fsdp::impl::CompileKernelsPassBase<CompileKernelsPass> {
public:
  using CompileKernelsPassBase::CompileKernelsPassBase;
  CompileKernelsPass(const StepOptions &options, bool code, std::shared_ptr<CompiledKernels> result)
      : options(options.codegen), code(code), timing(options.driver.timing),
        result(std::move(result)) {
    target = options.codegen.target;
    targetCpu = options.codegen.targetCpu;
  }

  void runOnOperation() override {
    options.target = target;
    options.targetCpu = targetCpu;
    FailureOr<CompiledKernels> compiled = options.isForCpu()
                                              ? compileForCpu(getOperation(), options, code, timing)
                                              : compileForGpu(getOperation(), options, code);
    if (failed(compiled))
      return signalPassFailure();
    setKernelScratch(getOperation(), compiled->image.kernels);
    numKernels += compiled->image.kernels.size();
    imageBytes += compiled->image.elf.size();
    if (result)
      *result = std::move(*compiled);
  }

private:
  CodegenOptions options;
  bool code = false, timing = false;
  // Receives the compiled kernels. Null if the caller does not need them.
  std::shared_ptr<CompiledKernels> result;
};
} // namespace

std::unique_ptr<Pass> fsdp::createCompileKernelsPass(const StepOptions &options, bool code,
                                                     std::shared_ptr<CompiledKernels> result) {
  return std::make_unique<CompileKernelsPass>(options, code, std::move(result));
}
