//===- fsdp-kernel-test.cpp - Run kernels against the oracle ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles the kernels of a file, loads the image, and runs every kernel on random inputs that are
// drawn from a seed. The program checks the following:
//
// 1. A kernel must compute the same bits if its range is run in one call, in three calls, or in
//    many calls in reverse order.
// 2. With --also-cpu, the kernel, compiled for the CPU that this option names, must compute the
//    same bits.
// 3. The results must differ from the results of the f64 oracle by at most a bound, which depends
//    on the element type.
//
// With --device=emulate, kernels are compiled to PTX and emulated. Checks 1 and 2 are then omitted.
//
// - No byte may change outside of the bindings that the kernel writes.
// - Floats in inputs are drawn uniformly from [-1, 1], or from [lo, hi] if the argument has
//   `fsdp.range = [lo, hi]`, and rounded to `fsdp.bits` significant bits. Integers in inputs are
//   drawn from [0, fsdp.limit). Write-only bindings and scratch are filled with NaN before the run.
// - With --error-factor=F, the error of a result may be at most F times the error that the oracle
//   has in the kernel's own types, plus an allowance for rounding. If a result of at most 16
//   values, or a gradient of attention with at most 16 scores, exceeds this bound, the kernel is
//   run on 16 draws of inputs, and the bound is applied to the root mean squares of the errors. No
//   value of the result may be NaN.
// - The attribute `fsdp.values = dense<..>` gives the values of an input. For an argument that is
//   only written (fsdp.out), the attribute gives the values that the kernel and the oracle must
//   write.
// - With the attribute `fsdp.from = ["kernel", i]`, an argument gets the result i that the oracle
//   computed for an earlier kernel. In this way, a kernel that computes gradients gets the results
//   of its forward kernel.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "Options.h"
#include "SaveBundle.h"
#include "fsdp/Analysis/ParserGuard.h"
#include "fsdp/Codegen/KernelCache.h"
#include "fsdp/IR/CheckTexts.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fsdp;

static Options options;

/// Prints the phases and the scratch bytes of a kernel. If the options request it, also times
/// several runs and prints the shortest time.
static void printKernel(Subject &subject, size_t index, const std::vector<Buffer> &inputs) {
  llvm::outs() << "@" << subject.info(index).name << ": ";
  subject.describe(index, llvm::outs());
  if (options.times) {
    double best = 1e30;
    std::vector<Buffer> again = inputs;
    for (int round = 0; round < 7; ++round) {
      auto begin = std::chrono::steady_clock::now();
      subject.run(index, again, Split::Whole);
      best = std::min(
          best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                    .count());
    }
    llvm::outs() << llvm::format(", %.1f us", best);
  }
}

/// Returns true if a float of the kernel is narrower than f64, the type of the oracle.
static bool isNarrow(func::FuncOp kernel) {
  return llvm::any_of(kernel.getArgumentTypes(), [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isa<FloatType>(element) && !element.isF64();
  });
}

/// Returns the largest error as a multiple of the error in low precision, or nothing if errors are
/// compared with the tolerance. Gradients of attention in bf16 or f16 sum rounded dS, and the
/// rounding errors of a row are in proportion to its dO · O. A single row can exceed the tolerance
/// of the type, which refers to the root mean square over all rows.
static std::optional<double> errorFactorOf(func::FuncOp kernel) {
  constexpr double ofGradients = 2;
  if (options.errorFactor || options.tolerance)
    return options.errorFactor;
  bool isRounded = false;
  kernel.walk([&](AttentionGradOp op) {
    isRounded |= getElementTypeOrSelf(op.getQ().getType()).getIntOrFloatBitWidth() < 32;
  });
  return isRounded ? std::optional<double>(ofGradients) : std::nullopt;
}

static bool testKernel(func::FuncOp kernel, Subject &subject, Subject *second, Oracle *oracle,
                       Subject *rough, size_t index) {
  std::vector<Buffer> inputs = makeInputs(kernel, oracle, 0);
  if (options.bench) {
    printKernel(subject, index, inputs);
    llvm::outs() << "\n";
    return true;
  }
  Bounds bounds{options.tolerance, errorFactorOf(kernel), options.floor};
  if (!bounds.errorFactor)
    rough = nullptr;
  Trial trial{bounds, kernel, subject, *oracle, rough, index, inputs, inputs, inputs, inputs};
  if (!oracle->run(index, trial.expected, 0) || !subject.run(index, trial.got, Split::Whole))
    return false;
  bool fine = givesSameBitsInParts(trial);
  fine &= !second || givesSameBits(trial, *second, Split::Whole, "for " + options.alsoCpu);
  fine &= !rough || rough->run(index, trial.low, Split::Whole);
  fine &= isAsExpected(trial);
  printKernel(subject, index, inputs);
  llvm::outs() << llvm::format(", error %.1e: ", trial.worst) << (fine ? "ok" : "FAILED") << "\n";
  return fine;
}

/// Returns true if the module has a kernel. With --only, returns true if the module has a kernel of
/// this name. Otherwise prints an error.
static bool hasKernels(ModuleOp module) {
  SmallVector<StringRef> names;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(kernelAttr))
      names.push_back(kernel.getName());
  if (!names.empty() && (options.only.empty() || llvm::is_contained(names, options.only)))
    return true;
  constexpr size_t most = 8;
  llvm::errs() << "fsdp-kernel-test: " << options.inputFile << ": expected a ";
  if (names.empty())
    llvm::errs() << "function marked fsdp.kernel, found none\n";
  else
    llvm::errs() << "kernel named '" << options.only << "', found "
                 << llvm::join(ArrayRef(names).take_front(most), ", ")
                 << (names.size() > most ? " and " + std::to_string(names.size() - most) + " more"
                                         : "")
                 << "\n";
  return false;
}

/// Returns those kernels that the options select, and erases all other functions. With --only,
/// selects the kernel of this name. If results are compared, also selects the kernels from which
/// arguments of a selected kernel get their values.
static SmallVector<func::FuncOp> chooseKernels(ModuleOp module) {
  llvm::StringSet<> names;
  if (auto only = module.lookupSymbol<func::FuncOp>(options.only);
      only && !options.bench && !options.onlyCompiles())
    for (unsigned i = 0; i < only.getNumArguments(); ++i)
      if (auto source = sourceOf(only, i))
        names.insert(source->first);
  names.insert(options.only);
  SmallVector<func::FuncOp> kernels;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (kernel->hasAttr(kernelAttr) && (options.only.empty() || names.contains(kernel.getName())))
      kernels.push_back(kernel);
    else
      kernel.erase();
  }
  return kernels;
}

namespace {
struct Compiled {
  FailureOr<Image> image = failure();
  std::unique_ptr<CpuSubject> subject;
  /// Loads an image. Returns false if the image could not be compiled or loaded.
  bool take(FailureOr<Image> made) {
    image = std::move(made);
    if (failed(image))
      return false;
    subject = std::make_unique<CpuSubject>(*image);
    return subject->isLoaded();
  }
};
} // namespace

static bool saveImage(const Image &image) {
  std::string problem =
      writeOutput(options.saveImage, StringRef(image.elf.data(), image.elf.size()));
  if (!problem.empty())
    llvm::errs() << "fsdp-kernel-test: error: " << problem << "\n";
  return problem.empty();
}

static CodegenOptions getGpuOptions() {
  CodegenOptions codegen;
  codegen.target = options.target;
  codegen.f32Products = options.f32Products;
  codegen.spills = options.spills;
  codegen.gemm = options.gemm == "cublaslt" ? GemmSource::CublasLt : GemmSource::Nvptx;
  // The limit is in seconds. All kernels are in one PTX text, so ptxas may need a long time.
  codegen.ptxasTimeout = 1200;
  return codegen;
}

/// Compiles all kernels to PTX for the emulator. If the options request it, also assembles them.
/// Returns null if a kernel could not be compiled.
static std::unique_ptr<Subject> emulateKernels(ModuleOp module, size_t count, GpuImage &image) {
  CodegenOptions codegen = getGpuOptions();
  FailureOr<GpuTarget> target = GpuTarget::get(codegen, module.getLoc());
  if (failed(target))
    return nullptr;
  bool assembles = options.spills != SpillPolicy::Ignore;
  FailureOr<GpuImage> made =
      compileGpuImage(module, *target, codegen, assembles ? GpuOutput::Cubin : GpuOutput::Ptx);
  if (failed(made))
    return nullptr;
  image = std::move(*made);
  if (image.kernels.size() == count)
    return std::make_unique<EmulatedSubject>(image);
  llvm::errs() << "error: expected code for " << count << (count == 1 ? " kernel" : " kernels")
               << ", found it for " << image.kernels.size() << "; the warnings say why\n";
  return nullptr;
}

/// Compiles the kernels for --target and writes the bundle. Returns the exit code.
static int bundleKernels(ModuleOp module) {
  CodegenOptions codegen = getGpuOptions();
  FailureOr<GpuTarget> target = GpuTarget::get(codegen, module.getLoc());
  if (failed(target))
    return 2;
  FailureOr<GpuImage> image = compileGpuImage(module, *target, codegen);
  if (failed(image))
    return 1;
  if (image->kernels.empty()) {
    llvm::errs() << "error: no kernel was generated for " << options.target << "\n";
    return 1;
  }
  return saveBundle(*image, module, options.saveBundle) ? 0 : 2;
}

/// Opens the cache of the options. Returns null if they name none.
static FailureOr<std::unique_ptr<KernelCache>> openCache(Location loc) {
  if (options.kernelCache.empty())
    return std::unique_ptr<KernelCache>();
  return KernelCache::open(options.kernelCache, loc);
}

/// Compiles the kernels and runs the checks. Returns the exit code.
static int testKernels(ModuleOp module, ArrayRef<func::FuncOp> kernels, const CpuTarget &target) {
  Compiled own, reference, low, other;
  GpuImage gpuImage;
  std::unique_ptr<Subject> emulated;
  // Open the cache before an image is loaded. The cache identifies this build of the compiler by
  // all objects that are loaded in the process.
  FailureOr<std::unique_ptr<KernelCache>> cache = openCache(module.getLoc());
  if (failed(cache))
    return 2;
  auto begin = std::chrono::steady_clock::now();
  if (options.emulates() ? !(emulated = emulateKernels(module, kernels.size(), gpuImage))
                         : !own.take(compileCpuImage(module, target)))
    return 1;
  double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (options.times)
    llvm::outs() << llvm::format("compiled %zu kernels in %.0f ms, ", kernels.size(), milliseconds)
                 << (emulated ? gpuImage.ptx.size() : own.image->elf.size()) << " bytes\n";
  if (!options.saveImage.empty() && !saveImage(*own.image))
    return 1;
  if (!options.bench &&
      !reference.take(compileReferenceImage(module, target, options.widen, cache->get())))
    return 1;
  auto needsLow = [](func::FuncOp kernel) { return errorFactorOf(kernel) && isNarrow(kernel); };
  if (!options.bench && llvm::any_of(kernels, needsLow) &&
      !low.take(compileReferenceImage(module, target, /*widen=*/false, cache->get())))
    return 1;
  if (!options.alsoCpu.empty()) {
    FailureOr<CpuTarget> second = findRunnableTarget("also-cpu", options.alsoCpu, module.getLoc());
    if (failed(second))
      return 2;
    if (!other.take(compileCpuImage(module, *second)))
      return 1;
  }
  std::optional<Oracle> oracle;
  if (reference.subject)
    oracle.emplace(*reference.subject, kernels);
  bool fine = true;
  Subject &subject = emulated ? *emulated : *own.subject;
  for (auto [index, kernel] : llvm::enumerate(kernels))
    fine &= testKernel(kernel, subject, other.subject.get(), oracle ? &*oracle : nullptr,
                       low.subject.get(), index);
  return fine ? 0 : 1;
}

/// Compiles the kernels for --target and prints what --emit requests. Returns the exit code.
static int printGpuKernels(ModuleOp module) {
  EmitKind what{};
  (void)readValue(options.emit, what); // parseOptions() has already checked the value
  return succeeded(fsdp::printGpuKernels(module, getGpuOptions(), what, llvm::outs())) ? 0 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-kernel-test");
  setVersion("fsdp-kernel-test");
  options = parseOptions(argc, argv);
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources; // source lines that diagnostics quote
  SourceMgrDiagnosticHandler handler(sources, &context);
  std::string why;
  std::unique_ptr<llvm::MemoryBuffer> file = openModel(options.inputFile, ParseLimits().bytes, why);
  if (!file) {
    llvm::errs() << "fsdp-kernel-test: error: " << why << "\n";
    return 2;
  }
  auto module = [&] {
    ParserGuard guard("fsdp-kernel-test", options.inputFile, file->getBufferSize());
    sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
    return parseSourceFile<ModuleOp>(sources, &context);
  }();
  if (!module || failed(checkTexts(*module)))
    return 2;
  if (!hasKernels(*module))
    return 2;
  SmallVector<func::FuncOp> kernels = chooseKernels(*module);
  if (failed(verifyArguments(kernels)) ||
      (!options.onlyCompiles() && failed(verifyRuns(kernels))) ||
      (!options.bench && !options.onlyCompiles() && failed(verifySources(kernels))))
    return 2;
  if (!options.saveBundle.empty())
    return bundleKernels(*module);
  if (!options.emit.empty())
    return printGpuKernels(*module);
  FailureOr<CpuTarget> target =
      findRunnableTarget("target-cpu", options.targetCpu, module->getLoc());
  return failed(target) ? 2 : testKernels(*module, kernels, *target);
}
