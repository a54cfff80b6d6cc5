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
// oracle is when it computes in the kernel's own types, and some roundings; no number may then be NaN. Of a result of under 16
// values that is farther the errors of 16 draws of the inputs are compared together, by their root mean square.
// `fsdp.values = dense<..>` gives an argument its values; on one that is only
// written (fsdp.out), those that kernel and oracle must both give. `fsdp.from = ["kernel", i]`
// gives it what the oracle found for result i of a kernel before: that of gradients in a forward kernel.
//
//===----------------------------------------------------------------------===//

#include "SaveBundle.h"
#include "Subject.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include <chrono>
#include <cmath>
#include <map>
#include <random>

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

/// The attribute `fsdp.values` of an argument, none when its type is another.
static DenseElementsAttr valuesOf(BlockArgument argument) {
  auto kernel = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto values = kernel.getArgAttrOfType<DenseElementsAttr>(argument.getArgNumber(), "fsdp.values");
  return values && values.getType() == argument.getType() ? values : DenseElementsAttr();
}

/// The kernel and the result that an argument takes its values from (fsdp.from).
static std::optional<std::pair<std::string, int64_t>> sourceOf(func::FuncOp kernel, unsigned number) {
  auto from = kernel.getArgAttrOfType<ArrayAttr>(number, "fsdp.from");
  if (!from || from.size() != 2 || !isa<StringAttr>(from[0]) || !isa<IntegerAttr>(from[1]))
    return std::nullopt;
  return std::pair(cast<StringAttr>(from[0]).str(), cast<IntegerAttr>(from[1]).getInt());
}

/// Each fsdp.from names a result of a kernel before, of the argument's type.
static LogicalResult verifySources(ArrayRef<func::FuncOp> kernels) {
  std::map<std::pair<std::string, int64_t>, Type> results;
  for (func::FuncOp kernel : kernels) {
    for (BlockArgument argument : kernel.getArguments()) {
      if (!kernel.getArgAttr(argument.getArgNumber(), "fsdp.from"))
        continue;
      auto source = sourceOf(kernel, argument.getArgNumber());
      if (!source)
        return kernel.emitError("argument ") << argument.getArgNumber() << ": expected fsdp.from = [\"kernel\", result]";
      auto found = results.find(*source);
      if (found == results.end() || found->second != argument.getType())
        return kernel.emitError("argument ") << argument.getArgNumber() << ": expected a kernel '" << source->first
                                             << "' before this one with a result " << source->second << " of type "
                                             << argument.getType();
    }
    for (BlockArgument argument : kernel.getArguments())
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), outAttr))
        results[{kernel.getName().str(), number.getInt()}] = argument.getType();
  }
  return success();
}

namespace {
/// Kernels that compute slowly in f64, on inputs by number of the draw.
class Oracle {
  Subject &subject;
  ArrayRef<func::FuncOp> kernels;
  /// Results of other kernels that arguments may take, by kernel, result and draw.
  std::map<std::tuple<std::string, int64_t, unsigned>, Buffer> found;

public:
  Oracle(Subject &subject, ArrayRef<func::FuncOp> kernels) : subject(subject), kernels(kernels) {}
  Buffer resultOf(const std::pair<std::string, int64_t> &source, unsigned draw);
  bool run(size_t index, std::vector<Buffer> &bindings, unsigned draw);
};
} // namespace

/// `oracle`: null where its results do not matter.
static std::vector<Buffer> makeInputs(func::FuncOp kernel, Oracle *oracle, unsigned draw) {
  std::vector<Buffer> buffers;
  std::mt19937_64 random(0x5eed + draw);
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    Type element = type.getElementType();
    double lo = -1, hi = 1;
    if (auto range = kernel.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "fsdp.range")) {
      lo = cast<FloatAttr>(range[0]).getValueAsDouble();
      hi = cast<FloatAttr>(range[1]).getValueAsDouble();
    }
    int64_t limit = 2;
    if (auto attr = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "fsdp.limit"))
      limit = attr.getInt();
    auto source = sourceOf(kernel, argument.getArgNumber());
    if (source && oracle) {
      buffers.push_back(oracle->resultOf(*source, draw));
      continue;
    }
    buffers.emplace_back(getStorageBytes(type));
    DenseElementsAttr values = valuesOf(argument);
    if (values && !kernel.getArgAttr(argument.getArgNumber(), outAttr)) {
      fill(buffers.back(), values);
      continue;
    }
    size_t size = getStorageBytes(type) / std::max<int64_t>(type.getNumElements(), 1);
    bool poisoned = kernel.getArgAttr(argument.getArgNumber(), outAttr) && isa<FloatType>(element);
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      double value = poisoned ? std::numeric_limits<double>::quiet_NaN()
                     : isa<FloatType>(element) ? std::uniform_real_distribution<double>(lo, hi)(random)
                                             : static_cast<double>(random() % limit);
      fromDouble(buffers.back().data() + i * size, element, value);
    }
  }
  return buffers;
}

bool Oracle::run(size_t index, std::vector<Buffer> &bindings, unsigned draw) {
  func::FuncOp kernel = kernels[index];
  if (!subject.run(index, bindings, Split::Whole))
    return false;
  for (BlockArgument argument : kernel.getArguments())
    if (auto number = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), outAttr))
      found.emplace(std::tuple(kernel.getName().str(), number.getInt(), draw), bindings[argument.getArgNumber()]);
  return true;
}

Buffer Oracle::resultOf(const std::pair<std::string, int64_t> &source, unsigned draw) {
  std::tuple place(source.first, source.second, draw);
  if (auto known = found.find(place); known != found.end())
    return known->second;
  size_t index = llvm::find_if(kernels, [&](func::FuncOp k) { return k.getName() == source.first; }) - kernels.begin();
  std::vector<Buffer> bindings = makeInputs(kernels[index], this, draw);
  run(index, bindings, draw);
  return found.at(place);
}

/// The bound for a result: of its type, or of a coarser one that the kernel
/// rounds to on the way (the oracle does not).
static double boundOf(func::FuncOp kernel, Type element) {
  if (options.tolerance)
    return *options.tolerance;
  if (!isa<FloatType>(element))
    return 0;
  kernel.walk([&](arith::TruncFOp op) {
    Type type = getElementTypeOrSelf(op.getType());
    if (type.isBF16() || (type.isF16() && !element.isBF16()) || (type.isF32() && element.isF64()))
      element = type;
  });
  if (element.isF64())
    return 1e-12;
  if (element.isF32())
    return 4e-6;
  return element.isBF16() ? 1.6e-2 : element.isF16() ? 2e-3 : 0;
}

/// The largest difference relative to the reference value, or to `floor` times the
/// root mean square of the tensor where the value is smaller.
static double compare(Buffer &got, Buffer &expected, RankedTensorType type, int64_t *where) {
  size_t size = got.bytes / std::max<int64_t>(type.getNumElements(), 1);
  double squares = 0, worst = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    if (double v = toDouble(expected.data() + i * size, type.getElementType()); std::isfinite(v)) {
      squares += v * v;
      ++finite;
    }
  double floor = options.floor * std::sqrt(squares / std::max<int64_t>(finite, 1)) + 1e-300;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    double x = toDouble(got.data() + i * size, type.getElementType());
    double y = toDouble(expected.data() + i * size, type.getElementType());
    double error = (std::isnan(x) && std::isnan(y)) || x == y ? 0 : std::fabs(x - y) / std::max(std::fabs(y), floor);
    if (!(error <= worst)) {
      worst = error;
      *where = i;
      if (std::isnan(error))
        return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

static bool sameBits(std::vector<Buffer> &a, std::vector<Buffer> &b, StringRef name, StringRef what) {
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(a, b)))
    if (memcmp(std::get<0>(pair).data(), std::get<1>(pair).data(), std::get<0>(pair).bytes)) {
      llvm::errs() << "error: @" << name << " gives other bits in binding " << index << " " << what << "\n";
      return false;
    }
  return true;
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

/// Draws over which errors of few values are compared: of one draw low precision may give them all well by chance.
static constexpr unsigned pooledDraws = 16;

namespace {
/// Root mean squares of what a result is wrong by, over elements and draws; and the largest rounding.
struct PooledError {
  double kernel = 0, low = 0, rounding = 0;
};
} // namespace

/// The sum over elements of squared differences.
static double sumSquares(Buffer &got, Buffer &expected, RankedTensorType type) {
  Type element = type.getElementType();
  size_t size = got.bytes / std::max<int64_t>(type.getNumElements(), 1);
  double sum = 0;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    double difference = toDouble(got.data() + i * size, element) - toDouble(expected.data() + i * size, element);
    sum += std::isfinite(difference) ? difference * difference : std::numeric_limits<double>::infinity();
  }
  return sum;
}

/// Of binding `number`, over `pooledDraws` draws, of which the first is that of the other tests.
static PooledError poolErrors(func::FuncOp kernel, Subject &subject, Oracle &oracle, Subject &rough, size_t index, unsigned number) {
  PooledError pooled;
  auto type = cast<RankedTensorType>(kernel.getArgument(number).getType());
  double values = static_cast<double>(pooledDraws) * static_cast<double>(type.getNumElements());
  for (unsigned draw = 0; draw < pooledDraws; ++draw) {
    std::vector<Buffer> expected = makeInputs(kernel, &oracle, draw), got = expected, low = expected;
    if (!oracle.run(index, expected, draw) || !subject.run(index, got, Split::Whole) ||
        !rough.run(index, low, Split::Whole))
      return {std::numeric_limits<double>::infinity(), 0, 0};
    pooled.kernel += sumSquares(got[number], expected[number], type) / values;
    pooled.low += sumSquares(low[number], expected[number], type) / values;
    pooled.rounding = std::max(pooled.rounding, measureError(got[number], expected[number], type).second);
  }
  return {std::sqrt(pooled.kernel), std::sqrt(pooled.low), pooled.rounding};
}

namespace {
/// What a run of a kernel has left, and what that is compared with.
struct Trial {
  func::FuncOp kernel;
  Subject &subject;
  Oracle &oracle;
  Subject *rough; ///< the oracle in the kernel's own types, or null
  size_t index;
  std::vector<Buffer> inputs, expected, got, low;
  double worst = 0;

  const std::string &name() const { return subject.info(index).name; }
};
} // namespace

/// Whether its range in parts, and another CPU, give the same bits.
static bool givesSameBits(Trial &trial, Subject *second) {
  bool fine = true;
  auto runAgain = [&](Subject &subject, Split split, const std::string &how) {
    std::vector<Buffer> again = trial.inputs;
    fine &= subject.run(trial.index, again, split) && sameBits(trial.got, again, trial.name(), how);
  };
  for (Split split : {Split::Three, Split::Reverse})
    if (trial.subject.canSplit())
      runAgain(trial.subject, split, "when its range is split");
  if (second)
    runAgain(*second, Split::Whole, "for " + options.alsoCpu);
  return fine;
}

/// Whether nothing was written but results.
static bool keepsWithin(Trial &trial, unsigned number) {
  Buffer &got = trial.got[number], &input = trial.inputs[number];
  bool isIntact = got.intact(), isSame = trial.subject.info(trial.index).writes[number] || !memcmp(got.data(), input.data(), got.bytes);
  if (!isIntact)
    llvm::errs() << "error: @" << trial.name() << " writes behind binding " << number << "\n";
  if (!isSame)
    llvm::errs() << "error: @" << trial.name() << " changes input " << number << "\n";
  return isIntact && isSame;
}

/// Whether kernel and oracle give the values that the argument says must come out.
static bool givesValues(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  DenseElementsAttr values = valuesOf(argument);
  if (!values || !trial.kernel.getArgAttr(number, outAttr))
    return true;
  Buffer given(trial.got[number].bytes);
  fill(given, values);
  bool fine = true;
  for (auto [whose, buffer] : {std::pair("the kernel", &trial.got[number]), std::pair("the oracle", &trial.expected[number])}) {
    int64_t at = 0;
    if (compare(*buffer, given, cast<RankedTensorType>(argument.getType()), &at) == 0)
      continue;
    llvm::errs() << "error: " << whose << " of @" << trial.name() << " does not give the values of binding " << number
                 << ", first in element " << at << "\n";
    fine = false;
  }
  return fine;
}

/// Whether its error is within --error-factor of that in low precision.
static bool isWithinFactor(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  auto [error, rounding] = measureError(trial.got[number], trial.expected[number], type);
  double lowError = measureError(trial.low[number], trial.expected[number], type).first;
  // Overflow of low precision excuses nothing.
  double allowed = *options.errorFactor * (std::isfinite(lowError) ? lowError : 0) + rounding;
  if (error > allowed && std::isfinite(error) && type.getNumElements() < 16) {
    PooledError pooled = poolErrors(trial.kernel, trial.subject, trial.oracle, *trial.rough, trial.index, number);
    error = pooled.kernel;
    allowed = *options.errorFactor * (std::isfinite(pooled.low) ? pooled.low : 0) + pooled.rounding;
  }
  trial.worst = std::max(trial.worst, error / (allowed + 1e-300));
  if (error <= allowed)
    return true;
  llvm::errs() << llvm::format("error: @%s binding %u has an error of %.3g, expected at most %.3g\n", trial.name().c_str(), number,
                               error, allowed);
  return false;
}

/// Whether its error is within the bound of its type.
static bool isWithinBound(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  int64_t where = 0;
  double error = compare(trial.got[number], trial.expected[number], type, &where);
  trial.worst = std::max(trial.worst, error);
  if (!(error > boundOf(trial.kernel, type.getElementType())))
    return true;
  size_t size = trial.got[number].bytes / type.getNumElements();
  llvm::errs() << "error: @" << trial.name() << " binding " << number << " element " << where << ": expected "
               << toDouble(trial.expected[number].data() + where * size, type.getElementType()) << ", found "
               << toDouble(trial.got[number].data() + where * size, type.getElementType()) << "\n";
  return false;
}

static bool compareAll(Trial &trial) {
  bool fine = true;
  for (BlockArgument argument : trial.kernel.getArguments()) {
    fine &= keepsWithin(trial, argument.getArgNumber());
    if (!trial.subject.info(trial.index).writes[argument.getArgNumber()])
      continue;
    fine &= givesValues(trial, argument);
    Type element = getElementTypeOrSelf(argument.getType());
    bool isRough = trial.rough && isa<FloatType>(element) && !element.isF64();
    fine &= isRough ? isWithinFactor(trial, argument) : isWithinBound(trial, argument);
  }
  return fine;
}

static bool testKernel(func::FuncOp kernel, Subject &subject, Subject *second, Oracle *oracle, Subject *rough, size_t index) {
  std::vector<Buffer> inputs = makeInputs(kernel, oracle, 0);
  if (options.bench) {
    printKernel(subject, index, inputs);
    llvm::outs() << "\n";
    return true;
  }
  Trial trial{kernel, subject, *oracle, rough, index, inputs, inputs, inputs, inputs};
  if (!oracle->run(index, trial.expected, 0) || !subject.run(index, trial.got, Split::Whole))
    return false;
  bool fine = givesSameBits(trial, second);
  fine &= !rough || rough->run(index, trial.low, Split::Whole);
  fine &= compareAll(trial);
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
  ScopedDiagnosticHandler said(module.getContext(), [](Diagnostic &diagnostic) { // without one, warnings are not printed
    llvm::errs() << (diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error: " : "warning: ") << diagnostic << "\n";
  });
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
  auto module = parseSourceFile<ModuleOp>(options.inputFile, &context);
  if (!module)
    return 2;
  if (!options.saveBundle.empty())
    return bundleKernels(*module);
  SmallVector<func::FuncOp> kernels = chooseKernels(*module);
  if (!options.bench && failed(verifySources(kernels)))
    return 2;
  if (!options.emit.empty())
    return printGpuKernels(*module);
  FailureOr<CpuTarget> target = CpuTarget::get(options.targetCpu, module->getLoc());
  return failed(target) ? 2 : testKernels(*module, kernels, *target);
}
