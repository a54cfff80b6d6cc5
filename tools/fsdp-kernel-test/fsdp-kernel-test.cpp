//===- fsdp-kernel-test.cpp - Run kernels against the oracle ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles the kernels of a file, loads the image from memory and runs every
// kernel on seeded inputs:
//
//  1. in one piece, in three, and with its tiles in reverse order: the same bits;
//  2. compiled for --also-cpu, when that is given: the same bits again;
//  3. by the oracle in f64: within a bound per element type.
//
// With --device=emulate kernels are compiled to PTX and run in the emulator instead of 1 and 2.
//
// No byte outside a written binding may change. Floats are uniform in [-1, 1] unless
// the argument says `fsdp.range = [lo, hi]`; integers lie in [0, fsdp.limit). What is only written,
// and scratch, begins as NaN. With --error-factor=F a result may be as far from the oracle as F times what the
// oracle is when it computes in the kernel's own types, and some roundings; no number may then be NaN. Of a result of up to 16
// values that is farther the errors of 16 draws of the inputs are compared together, by their root mean square.
// `fsdp.values = dense<..>` gives an argument its values; on one that is only
// written (fsdp.out), those that kernel and oracle must both give. `fsdp.from = ["kernel", i]`
// gives it what the oracle found for result i of a kernel before: that of gradients in a forward kernel.
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "SaveBundle.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fsdp;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview = R"(fsdp-kernel-test: run kernels against the oracle

  Compiles every function marked fsdp.kernel of a file, runs it on seeded inputs in one piece, in three
  and in reverse order (the same bits), and compares with the oracle in f64.

    fsdp-compile model.mlir --compile-to=plan -o planned.mlir
    fsdp-kernel-test planned.mlir                               all kernels of a model
    fsdp-kernel-test planned.mlir --also-cpu=x86-64-v3          a second CPU has to give the same bits
    fsdp-kernel-test planned.mlir --error-factor=2              errors against those of the oracle in low precision
    fsdp-kernel-test planned.mlir --bench --only=NAME           times alone, of one
    fsdp-kernel-test attention.mlir --device=emulate --target=sm_80
                                                                PTX in the emulator, with all of its checks
    fsdp-kernel-test attention.mlir --target=sm_80 --save-bundle=DIR
                                                                for a machine that has a GPU
    fsdp-kernel-test attention.mlir --emit=sass-stats           what ptxas says of it

  Argument attributes: fsdp.range = [lo, hi] of floats (default -1, 1), fsdp.limit = n for integers in
  [0, n), fsdp.values = dense<..> for values, or for those that must come out, fsdp.from = ["kernel", i]
  for what the oracle found for result i of a kernel before.

  Exit codes: 0 all agree, 1 some do not or did not compile, 2 bad usage or input.
)";

namespace {
/// The linker inside this process resets options of llvm::cl, so they are copied.
struct Options {
  std::string inputFile, device, target, targetCpu, alsoCpu, only, saveImage, saveBundle, emit;
  std::optional<double> tolerance, errorFactor;
  double floor;
  bool times, bench, widen;
} options;
} // namespace

static void parseOptions(int argc, char **argv) {
  static cl::OptionCategory category("Options");
  static cl::opt<std::string> inputFile(cl::Positional, cl::Required, cl::desc("<kernels.mlir>"), cl::cat(category));
  static cl::opt<std::string> device("device", cl::init("cpu"), cl::desc("Where kernels run: cpu (default), or emulate: PTX for --target, with all checks of the emulator"), cl::cat(category));
  static cl::opt<std::string> target("target", cl::init("sm_80"), cl::desc("Chip to compile for, with --device=emulate and --save-bundle (default sm_80)"), cl::cat(category));
  static cl::opt<std::string> emit("emit", cl::desc("Only compile for --target, and print ptx, kernel-mlir or sass-stats"), cl::cat(category));
  static cl::opt<std::string> targetCpu("target-cpu", cl::init("native"), cl::desc("CPU to compile for"), cl::cat(category));
  static cl::opt<std::string> alsoCpu("also-cpu", cl::desc("A second CPU that must give the same bits"), cl::cat(category));
  static cl::opt<std::string> only("only", cl::desc("Only the kernel of this name"), cl::cat(category));
  static cl::opt<double> tolerance("tolerance", cl::desc("Instead of the bound of the element type"), cl::cat(category));
  static cl::opt<double> errorFactor("error-factor", cl::desc("Largest error, as a multiple of that of the oracle in the kernel's own types"), cl::cat(category));
  static cl::opt<double> floor("floor", cl::init(1), cl::desc("Errors are relative to the value or to this much of the root mean square"), cl::cat(category));
  static cl::opt<bool> times("times", cl::desc("Print compile time and microseconds per run"), cl::cat(category));
  static cl::opt<bool> widen("widen", cl::init(true), cl::desc("Let the oracle compute in f64 (default), or in the kernel's types"), cl::cat(category));
  static cl::opt<bool> bench("bench", cl::desc("Only time the kernels: no oracle, no comparison"), cl::cat(category));
  static cl::opt<std::string> saveImage("save-image", cl::desc("Write the linked image to this file"), cl::cat(category));
  static cl::opt<std::string> saveBundle("save-bundle", cl::desc("Run nothing: write kernels for --target, and how they are launched, to this folder"), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    std::exit(2);
  options = {inputFile, device, target, targetCpu, alsoCpu, only, saveImage, saveBundle, emit, {}, {}, floor, times || bench, bench, widen};
  if (tolerance.getNumOccurrences())
    options.tolerance = tolerance;
  if (errorFactor.getNumOccurrences())
    options.errorFactor = errorFactor;
}

/// Phases, scratch and, when asked for, the least time of several runs.
static void printKernel(Subject &subject, size_t index, const std::vector<Buffer> &inputs) {
  llvm::outs() << "@" << subject.info(index).name << ": ";
  subject.describe(index, llvm::outs());
  if (options.times) {
    double best = 1e30;
    std::vector<Buffer> again = inputs;
    for (int round = 0; round < 7; ++round) {
      auto begin = std::chrono::steady_clock::now();
      subject.run(index, again, Split::Whole);
      best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    llvm::outs() << llvm::format(", %.1f us", best);
  }
}

static bool testKernel(func::FuncOp kernel, Subject &subject, Subject *second, Oracle *oracle, Subject *rough, size_t index) {
  std::vector<Buffer> inputs = makeInputs(kernel, oracle, 0);
  if (options.bench) {
    printKernel(subject, index, inputs);
    llvm::outs() << "\n";
    return true;
  }
  Bounds bounds{options.tolerance, options.errorFactor, options.floor};
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

/// Whether the oracle has more bits than a float of the kernel.
static bool isNarrow(func::FuncOp kernel) {
  return llvm::any_of(kernel.getArgumentTypes(), [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isa<FloatType>(element) && !element.isF64();
  });
}

/// The kernels of the module, or --only that one and what its arguments come from; erases all others.
static SmallVector<func::FuncOp> chooseKernels(ModuleOp module) {
  llvm::StringSet<> names;
  if (auto only = module.lookupSymbol<func::FuncOp>(options.only); only && !options.bench)
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

/// An image, loaded.
namespace {
struct Compiled {
  FailureOr<Image> image = failure();
  std::unique_ptr<CpuSubject> subject;
  /// Whether there is something to run.
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
  std::error_code error;
  llvm::raw_fd_ostream file(options.saveImage, error);
  if (error) {
    llvm::errs() << "error: cannot write " << options.saveImage << ": " << error.message() << "\n";
    return false;
  }
  file.write(image.elf.data(), image.elf.size());
  return true;
}

/// PTX of all kernels, to be emulated; null when there is none of one of them.
static std::unique_ptr<Subject> emulateKernels(ModuleOp module, size_t count, GpuImage &image) {
  FailureOr<GpuTarget> target = GpuTarget::get(options.target, module.getLoc());
  GpuOptions gpu;
  gpu.assemble = false;
  FailureOr<GpuImage> made = failed(target) ? FailureOr<GpuImage>(failure()) : compileGpuImage(module, *target, gpu);
  if (failed(made))
    return nullptr;
  image = std::move(*made);
  if (image.kernels.size() == count)
    return std::make_unique<EmulatedSubject>(image);
  llvm::errs() << "error: expected code for " << count << " kernels, found it for " << image.kernels.size() << "\n";
  return nullptr;
}

/// Kernels for --target as files; the exit status.
static int bundleKernels(ModuleOp module) {
  FailureOr<GpuTarget> target = GpuTarget::get(options.target, module.getLoc());
  if (failed(target))
    return 2;
  FailureOr<GpuImage> image = compileGpuImage(module, *target);
  if (failed(image))
    return 1;
  return saveBundle(*image, module, options.saveBundle) ? 0 : 2;
}

/// Compiles what is compared and compares; the exit status.
static int testKernels(ModuleOp module, ArrayRef<func::FuncOp> kernels, const CpuTarget &target) {
  Compiled own, reference, low, other;
  GpuImage gpuImage;
  std::unique_ptr<Subject> emulated;
  auto begin = std::chrono::steady_clock::now();
  if (options.device == "emulate" ? !(emulated = emulateKernels(module, kernels.size(), gpuImage))
                                  : !own.take(compileCpuImage(module, target)))
    return 1;
  double milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (options.times)
    llvm::outs() << llvm::format("compiled %zu kernels in %.0f ms, ", kernels.size(), milliseconds)
                 << (emulated ? gpuImage.ptx.size() : own.image->elf.size()) << " bytes\n";
  if (!options.saveImage.empty() && !emulated && !saveImage(*own.image))
    return 2;
  if (!options.bench && !reference.take(compileReferenceImage(module, target, options.widen)))
    return 1;
  if (options.errorFactor && !options.bench && llvm::any_of(kernels, isNarrow) &&
      !low.take(compileReferenceImage(module, target, /*widen=*/false)))
    return 1;
  if (!options.alsoCpu.empty()) {
    FailureOr<CpuTarget> second = CpuTarget::get(options.alsoCpu, module.getLoc());
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
    fine &= testKernel(kernel, subject, other.subject.get(), oracle ? &*oracle : nullptr, low.subject.get(), index);
  return fine ? 0 : 1;
}

/// --emit; the exit status.
static int printGpuKernels(ModuleOp module) {
  CompileOptions compile;
  compile.target = options.target;
  compile.gpu.assemblerSeconds = 1200; // a table of many kernels is one text
  return succeeded(fsdp::printGpuKernels(module, compile, options.emit, llvm::outs())) ? 0 : 1;
}

static bool isWhat(StringRef emit) { return emit.empty() || emit == "ptx" || emit == "kernel-mlir" || emit == "sass-stats"; }

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-kernel-test");
  setVersion("fsdp-kernel-test");
  parseOptions(argc, argv);
  if (options.device != "cpu" && options.device != "emulate") {
    llvm::errs() << "fsdp-kernel-test: --device=" << options.device << ": expected cpu or emulate\n";
    return 2;
  }
  if (!isWhat(options.emit)) {
    llvm::errs() << "fsdp-kernel-test: --emit=" << options.emit << ": expected ptx, kernel-mlir or sass-stats\n";
    return 2;
  }
  bool isForGpu = options.device == "emulate" || !options.saveBundle.empty() || !options.emit.empty();
  if (isForGpu && !GpuTarget::isKnown(options.target)) {
    llvm::errs() << "fsdp-kernel-test: --target=" << options.target << ": expected " << GpuTarget::getNames() << "\n";
    return 2;
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources; // shows lines
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(options.inputFile, sources, &context);
  if (!module)
    return 2;
  if (!options.saveBundle.empty())
    return bundleKernels(*module);
  SmallVector<func::FuncOp> kernels = chooseKernels(*module);
  if (failed(verifyArguments(kernels)) || (!options.bench && failed(verifySources(kernels))))
    return 2;
  if (!options.emit.empty())
    return printGpuKernels(*module);
  FailureOr<CpuTarget> target = CpuTarget::get(options.targetCpu, module->getLoc());
  return failed(target) ? 2 : testKernels(*module, kernels, *target);
}
