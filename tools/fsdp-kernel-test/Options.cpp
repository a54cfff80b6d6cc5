//===- Options.cpp - The options of fsdp-kernel-test ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// It is an error to give an option that has no effect together with the other options.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "fsdp/Tools/ToolMain.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview = R"(fsdp-kernel-test: run kernels against the oracle

  Compiles every function marked fsdp.kernel, runs it on seeded inputs in one part, in three parts and in
  reverse order, expects equal bits, and compares the results with an f64 reference, the oracle.

    fsdp-compile model.mlir --compile-to=plan -o planned.mlir
    fsdp-kernel-test planned.mlir                               all kernels of a model
    fsdp-kernel-test planned.mlir --also-cpu=x86-64-v3          also for a second CPU, with equal bits
    fsdp-kernel-test planned.mlir --error-factor=2              errors relative to those of the oracle in low precision
    fsdp-kernel-test planned.mlir --bench --only=NAME           only the time of one kernel
    fsdp-kernel-test attention.mlir --device=emulate --target=sm_80
                                                                run PTX in the checking emulator
    fsdp-kernel-test attention.mlir --target=sm_80 --save-bundle=DIR
                                                                write kernels for a machine with a GPU
    fsdp-kernel-test attention.mlir --emit=sass-stats           print registers, spills and instructions

  Argument attributes: fsdp.range = [lo, hi] of floats (default -1, 1), fsdp.bits = n for floats
  of n significant bits, fsdp.limit = n for integers in [0, n), fsdp.values = dense<..> for the values
  of an input or the expected values of a result, fsdp.from = ["kernel", i] for the oracle's
  result i of an earlier kernel.

  FSDP_KERNEL_CACHE names a folder in which compiled kernels of the oracle are kept and looked up.

  Exit codes: 0 all agree, 1 some differ or do not compile, 2 bad usage or input.
)";

namespace {
/// Declares the options of the command line as options of llvm::cl.
struct CommandLine {
  cl::OptionCategory category{"Options"};
  cl::opt<std::string> inputFile{cl::Positional, cl::Required, cl::desc("<kernels.mlir>"),
                                 cl::cat(category)};
  cl::opt<std::string> device{"device", cl::init("cpu"),
                              cl::desc("Where kernels run: cpu (default), or emulate: PTX for "
                                       "--target, with all checks of the emulator"),
                              cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::init("sm_80"),
      cl::desc(
          "GPU to compile for with --device=emulate, --emit and --save-bundle (default sm_80)"),
      cl::cat(category)};
  cl::opt<std::string> gemm{
      "gemm", cl::init("nvptx"),
      cl::desc("With --emit, backend of contractions: nvptx (default) or cublaslt"),
      cl::cat(category)};
  cl::opt<std::string> f32Products{
      "f32-products", cl::init("exact"),
      cl::desc("f32 factors on a GPU: exact (default) or tf32, rounded to 11 bits"),
      cl::cat(category)};
  cl::opt<std::string> spills{
      "spills",
      cl::desc("Action when registers spill: ignore, warn or error (default: warn; with "
               "--device=emulate: ignore)"),
      cl::cat(category)};
  cl::opt<std::string> emit{
      "emit", cl::desc("Compile for --target and print ptx, kernel-mlir, sass-stats or clocks"),
      cl::cat(category)};
  cl::opt<std::string> targetCpu{"target-cpu", cl::init("native"), cl::desc("CPU to compile for"),
                                 cl::cat(category)};
  cl::opt<std::string> alsoCpu{
      "also-cpu", cl::desc("Second CPU to compile for; its results must be equal bit for bit"),
      cl::cat(category)};
  cl::opt<std::string> only{
      "only", cl::desc("Name of the only kernel to run, beside those that fsdp.from names"),
      cl::cat(category)};
  cl::opt<double> tolerance{"tolerance", cl::desc("Largest error (default: by the element type)"),
                            cl::cat(category)};
  cl::opt<double> errorFactor{
      "error-factor",
      cl::desc(
          "Largest error as a multiple of the oracle's in the kernel's types (narrow attention "
          "gradients: 2)"),
      cl::cat(category)};
  cl::opt<double> floor{"floor", cl::init(1),
                        cl::desc("Errors are relative to the larger of the value and this fraction "
                                 "of the root mean square"),
                        cl::cat(category)};
  cl::opt<bool> times{"times",
                      cl::desc("Print the compile time and the time of a run in microseconds"),
                      cl::cat(category)};
  cl::opt<bool> widen{
      "widen", cl::init(true),
      cl::desc("Compute the oracle in f64 (default) or, with =false, in the kernel's types"),
      cl::cat(category)};
  cl::opt<bool> bench{"bench", cl::desc("Measure times only: no oracle, no comparison"),
                      cl::cat(category)};
  cl::opt<std::string> saveImage{"save-image", cl::desc("File to write the linked image to"),
                                 cl::cat(category)};
  cl::opt<std::string> saveBundle{"save-bundle",
                                  cl::desc("Write kernels for --target and their launch parameters "
                                           "to this folder, without running them"),
                                  cl::cat(category)};
};
} // namespace

/// Returns an error if the value of an option is unknown or empty. Otherwise returns nothing.
static std::optional<std::string> checkValues(const CommandLine &line) {
  for (const cl::opt<std::string> *option :
       {&line.device, &line.target, &line.emit, &line.targetCpu, &line.alsoCpu, &line.only,
        &line.saveImage, &line.saveBundle})
    if (option->getNumOccurrences() && option->empty())
      return "--" + option->ArgStr.str() + "=: expected a value";
  if (line.device != "cpu" && line.device != "emulate")
    return "--device=" + line.device + ": expected cpu or emulate";
  if (EmitKind what{}; !line.emit.empty() && readValue(line.emit, what))
    return "--emit=" + line.emit + ": expected ptx, kernel-mlir, sass-stats or clocks";
  if (F32Products how{}; readValue(line.f32Products, how))
    return "--f32-products=" + line.f32Products + ": expected exact or tf32";
  if (SpillPolicy policy{}; line.spills.getNumOccurrences() && readValue(line.spills, policy))
    return "--spills=" + line.spills + ": expected ignore, warn or error";
  for (const cl::opt<double> *option : {&line.tolerance, &line.errorFactor, &line.floor})
    if (double value = *option; !std::isfinite(value) || value < 0) {
      std::string text = "--" + option->ArgStr.str() + "=";
      llvm::raw_string_ostream(text)
          << llvm::format("%g", value) << ": expected a finite number of at least 0";
      return text;
    }
  if (!GpuTarget::isKnown(line.target))
    return "--target=" + line.target + ": expected " + GpuTarget::getNames();
  return std::nullopt;
}

/// Returns an error if an option has no effect together with the other options, and otherwise
/// nothing.
static std::optional<std::string> checkUnread(const CommandLine &line) {
  bool emulates = line.device == "emulate", emits = !line.emit.empty(),
       saves = !line.saveBundle.empty();
  if (line.gemm != "nvptx" && (line.gemm != "cublaslt" || !emits))
    return "--gemm=" + line.gemm + ": expected nvptx, or cublaslt together with --emit";
  if (emits && saves)
    return std::string("--emit prints kernels, --save-bundle writes them: give one of them");
  if (line.target.getNumOccurrences() && !emulates && !emits && !saves)
    return std::string("--target has no effect without --device=emulate, --emit or --save-bundle");
  if (line.f32Products.getNumOccurrences() && !emulates && !emits && !saves)
    return std::string(
        "--f32-products has no effect without --device=emulate, --emit or --save-bundle");
  bool assembles = emulates || saves || line.emit == "ptx" || line.emit == "sass-stats";
  if (line.spills.getNumOccurrences() && !assembles)
    return std::string("--spills has no effect without machine code: give --device=emulate, "
                       "--save-bundle, --emit=ptx or --emit=sass-stats");
  const cl::Option *ofComparisons[] = {&line.tolerance, &line.errorFactor, &line.floor, &line.widen,
                                       &line.alsoCpu};
  for (const cl::Option *option : ofComparisons)
    if (option->getNumOccurrences() && line.bench)
      return "--" + option->ArgStr.str() +
             " has no effect with --bench, which compares no results: remove it";
  if (line.errorFactor.getNumOccurrences() && line.tolerance.getNumOccurrences())
    return std::string("--tolerance and --error-factor both bound errors: give one of them");
  if (line.errorFactor.getNumOccurrences() && !line.widen)
    return std::string("--error-factor compares with an oracle in f64: remove --widen=false");
  const cl::Option *ofRuns[] = {&line.device,      &line.targetCpu, &line.alsoCpu, &line.tolerance,
                                &line.errorFactor, &line.floor,     &line.times,   &line.widen,
                                &line.bench,       &line.saveImage};
  for (const cl::Option *option : ofRuns)
    if (option->getNumOccurrences() && (emits || saves))
      return "--" + option->ArgStr.str() + " has no effect with " +
             (emits ? "--emit" : "--save-bundle") + ", which only compiles: remove it";
  const cl::Option *ofCpus[] = {&line.alsoCpu, &line.saveImage, &line.times, &line.bench};
  for (const cl::Option *option : ofCpus)
    if (option->getNumOccurrences() && emulates)
      return "--" + option->ArgStr.str() +
             " has no effect with --device=emulate: it applies to CPU kernels";
  return std::nullopt;
}

Options fsdp::parseOptions(int argc, char **argv) {
  // This object is static, because the linker in this process resets registered options.
  static CommandLine line;
  cl::HideUnrelatedOptions(line.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    std::exit(2);
  std::optional<std::string> problem = findRepeatedOption(ArrayRef(argv, argc).drop_front());
  if (!problem)
    problem = checkValues(line);
  if (!problem)
    problem = checkUnread(line);
  if (!problem && !line.saveImage.empty())
    problem = whyNotWritable(line.saveImage, line.inputFile);
  if (problem) {
    llvm::errs() << "fsdp-kernel-test: " << *problem << "\n";
    std::exit(2);
  }
  auto isOwn = [](const cl::Option &option) {
    return llvm::is_contained(option.Categories, &line.category);
  };
  F32Products f32Products{};
  // The emulator needs no machine code. With --device=emulate, ptxas runs only if --spills is
  // given.
  SpillPolicy spills = line.device == "emulate" ? SpillPolicy::Ignore : SpillPolicy::Warn;
  // checkValues() has already checked these values.
  (void)readValue(line.f32Products, f32Products);
  if (line.spills.getNumOccurrences())
    (void)readValue(line.spills, spills);
  Options options = {line.inputFile,
                     line.device,
                     line.target,
                     line.targetCpu,
                     line.alsoCpu,
                     line.only,
                     line.saveImage,
                     line.saveBundle,
                     line.emit,
                     line.gemm,
                     chooseKernelCache({}, isOwn),
                     {},
                     {},
                     f32Products,
                     spills,
                     line.floor,
                     line.times || line.bench,
                     line.bench,
                     line.widen};
  if (line.tolerance.getNumOccurrences())
    options.tolerance = line.tolerance;
  if (line.errorFactor.getNumOccurrences())
    options.errorFactor = line.errorFactor;
  return options;
}
