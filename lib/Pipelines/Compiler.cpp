//===- Compiler.cpp - From a model to an artifact ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "GpuKernels.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/Gpu/Ptxas.h"
#include "fsdp/Codegen/KernelCache.h"
#include "fsdp/Codegen/Pipeline.h"
#include "fsdp/Package/Package.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fsdp;

ArrayRef<Phase> fsdp::getPhases() {
  static const Phase phases[] = {
#define FSDP_PHASE(mnemonic, sentence, build, member)                                              \
  {#mnemonic, sentence,                                                                            \
   [](OpPassManager &pm, const CompileOptions &options) { build(pm, options.member); }},
#include "Phases.def"
  };
  return phases;
}

/// Milliseconds of a phase, printed when asked for.
namespace {
class PhaseTimer {
public:
  PhaseTimer(bool enabled, StringRef name) : enabled(enabled), name(name) {}
  ~PhaseTimer() {
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    if (enabled)
      llvm::errs() << llvm::format("%10.1f ms  ", spent.count()) << name << "\n";
  }

private:
  bool enabled;
  StringRef name;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};
} // namespace

/// Writes `03.differentiate.mlir` and its like.
static LogicalResult dump(ModuleOp module, StringRef directory, unsigned number,
                          StringRef mnemonic) {
  if (std::error_code ec = llvm::sys::fs::create_directories(directory))
    return emitError(module.getLoc()) << "cannot create '" << directory << "': " << ec.message();
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path,
                          (number < 10 ? "0" : "") + Twine(number) + "." + mnemonic + ".mlir");
  std::error_code ec;
  llvm::raw_fd_ostream os(path, ec);
  if (!ec) {
    module.print(os);
    os.close();
    ec = os.error();
    os.clear_error();
  }
  return ec ? emitError(module.getLoc()) << "cannot write '" << path << "': " << ec.message()
            : LogicalResult(success());
}

/// What is not given and the model or the target decides.
static LogicalResult chooseAfterImport(ModuleOp imported, CompileOptions &options) {
  if (options.afterImport && failed(options.afterImport(imported)))
    return failure();
  return GpuTarget::isKnown(options.target) ? fitToGpu(options, imported.getLoc())
                                            : LogicalResult(success());
}

LogicalResult fsdp::runPhases(ModuleOp module, CompileOptions &options, StringRef last,
                              SmallVectorImpl<DtypeRow> *dtypes) {
  for (auto [index, phase] : llvm::enumerate(getPhases())) {
    PhaseTimer timer(options.timing, phase.mnemonic);
    PassManager pm(module->getContext(), ModuleOp::getOperationName());
    phase.build(pm, options);
    if (failed(pm.run(module)))
      return failure();
    if (!options.dumpDirectory.empty() &&
        failed(dump(module, options.dumpDirectory, index + 1, phase.mnemonic)))
      return failure();
    if (phase.mnemonic == "import" && failed(chooseAfterImport(module, options)))
      return failure();
    if (dtypes && phase.mnemonic == "update")
      *dtypes = measureDtypes(module);
    if (phase.mnemonic == last)
      break;
  }
  return success();
}

static FailureOr<Kernels> compileForCpu(ModuleOp planned, const CompileOptions &options,
                                        bool code) {
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
  FailureOr<Image> image = options.target == "reference"
                               ? compileReferenceImage(planned, *target, /*widen=*/true)
                           : code ? compileCpuImage(planned, *target, cache.get())
                                  : measureCpuKernels(planned, *target);
  if (failed(image))
    return failure();
  if (options.timing && cache)
    llvm::errs() << cache->numFound() << " of " << cache->numAsked() << " kernels are of "
                 << options.kernelCache << "\n";
  return Kernels{std::move(*image), {}};
}

FailureOr<Kernels> fsdp::compileKernels(ModuleOp planned, const CompileOptions &options,
                                        bool code) {
  PhaseTimer timer(options.timing, code ? "codegen" : "codegen (no code)");
  FailureOr<Kernels> kernels = GpuTarget::isKnown(options.target)
                                   ? compileForGpu(planned, options, code)
                                   : compileForCpu(planned, options, code);
  if (succeeded(kernels))
    addWorkspace(planned, kernels->image, options.threadsPerRank);
  return kernels;
}

LogicalResult fsdp::printGpuKernels(ModuleOp planned, const CompileOptions &options, StringRef what,
                                    llvm::raw_ostream &os) {
  PhaseTimer timer(options.timing, "codegen");
  FailureOr<GpuTarget> target = getGpuTarget(options, planned.getLoc());
  if (failed(target))
    return failure();
  GpuOptions gpu = options.gpu;
  gpu.assemble = what != "kernel-mlir";
  gpu.keepMlir = !gpu.assemble;
  FailureOr<GpuImage> image = compileGpuImage(planned, *target, gpu);
  if (failed(image))
    return failure();
  if (image->kernels.empty())
    return emitError(planned.getLoc())
           << "expected kernels that there is code for on " << options.target << ", found none";
  if (what == "sass-stats") {
    if (image->cubin.empty())
      return emitError(planned.getLoc())
             << "sass-stats is what ptxas says, and there is none in " << ptxasPlaces;
    if (image->reports.empty())
      return emitError(planned.getLoc())
             << "sass-stats is what ptxas prints with -v, expected lines such as "
                "\"Compiling entry function\", found none";
    printStatistics(*image, os);
    return success();
  }
  printLaunches(*image, os);
  os << (what == "ptx" ? image->ptx : image->mlir);
  return success();
}

LogicalResult fsdp::writeArtifact(ModuleOp planned, const Kernels &kernels,
                                  const CompileOptions &options, StringRef path) {
  PhaseTimer timer(options.timing, "package");
  PackageOptions package;
  package.compiler = options.compiler;
  package.source = options.source;
  package.target = options.target;
  package.threadsPerRank = options.threadsPerRank;
  if (!kernels.gpu.chip.empty())
    package.gpu = &kernels.gpu;
  const UpdateOptions &update = options.update;
  package.optimizer = {update.optimizer, options.learningRate, update.beta1,
                       update.beta2,     update.eps,           update.weightDecay,
                       update.momentum,  update.clipGradNorm};
  FailureOr<ArtifactPieces> file = buildArtifact(planned, kernels.image, package);
  if (failed(file))
    return failure();
  return writeFile(path, *file, planned.getLoc());
}

LogicalResult fsdp::lowerKernels(ModuleOp planned, const CompileOptions &options) {
  // Programs launch kernels; phase functions are something else.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*planned.getBody())))
    if (!op.hasAttr(kernelAttr))
      op.erase();
  PassManager pm(planned->getContext(), ModuleOp::getOperationName());
  CodegenOptions codegen;
  if (!options.targetCpu.empty())
    codegen.targetCpu = options.targetCpu;
  buildCodegenPipeline(pm, codegen);
  return pm.run(planned);
}
