//===- Options.cpp - The options of fsdp-kernel-test ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an option is for and what is asked for have to go together: one that nothing would read is
// refused.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

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
/// As they are given.
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
          "Chip to compile for, with --device=emulate, --emit and --save-bundle (default sm_80)"),
      cl::cat(category)};
  cl::opt<std::string> gemm{
      "gemm", cl::init("nvptx"),
      cl::desc("With --emit, who computes contractions: nvptx (default) or cublaslt"),
      cl::cat(category)};
  cl::opt<std::string> emit{
      "emit", cl::desc("Only compile for --target, and print ptx, kernel-mlir or sass-stats"),
      cl::cat(category)};
  cl::opt<std::string> targetCpu{"target-cpu", cl::init("native"), cl::desc("CPU to compile for"),
                                 cl::cat(category)};
  cl::opt<std::string> alsoCpu{"also-cpu", cl::desc("A second CPU that must give the same bits"),
                               cl::cat(category)};
  cl::opt<std::string> only{"only", cl::desc("Only the kernel of this name"), cl::cat(category)};
  cl::opt<double> tolerance{"tolerance", cl::desc("Instead of the bound of the element type"),
                            cl::cat(category)};
  cl::opt<double> errorFactor{
      "error-factor",
      cl::desc("Largest error, as a multiple of that of the oracle in the kernel's own types"),
      cl::cat(category)};
  cl::opt<double> floor{
      "floor", cl::init(1),
      cl::desc("Errors are relative to the value or to this much of the root mean square"),
      cl::cat(category)};
  cl::opt<bool> times{"times", cl::desc("Print compile time and microseconds per run"),
                      cl::cat(category)};
  cl::opt<bool> widen{"widen", cl::init(true),
                      cl::desc("Let the oracle compute in f64 (default), or in the kernel's types"),
                      cl::cat(category)};
  cl::opt<bool> bench{"bench", cl::desc("Only time the kernels: no oracle, no comparison"),
                      cl::cat(category)};
  cl::opt<std::string> saveImage{"save-image", cl::desc("Write the linked image to this file"),
                                 cl::cat(category)};
  cl::opt<std::string> saveBundle{
      "save-bundle",
      cl::desc(
          "Run nothing: write kernels for --target, and how they are launched, to this folder"),
      cl::cat(category)};
};
} // namespace

/// What is wrong with options whose values are not known, or empty.
static std::optional<std::string> checkValues(const CommandLine &line) {
  for (const cl::opt<std::string> *option :
       {&line.device, &line.target, &line.emit, &line.targetCpu, &line.alsoCpu, &line.only,
        &line.saveImage, &line.saveBundle})
    if (option->getNumOccurrences() && option->empty())
      return "--" + option->ArgStr.str() + "=: expected a value";
  if (line.device != "cpu" && line.device != "emulate")
    return "--device=" + line.device + ": expected cpu or emulate";
  if (!line.emit.empty() && line.emit != "ptx" && line.emit != "kernel-mlir" &&
      line.emit != "sass-stats")
    return "--emit=" + line.emit + ": expected ptx, kernel-mlir or sass-stats";
  if (!GpuTarget::isKnown(line.target))
    return "--target=" + line.target + ": expected " + GpuTarget::getNames();
  return std::nullopt;
}

/// What is wrong with options that nothing would read.
static std::optional<std::string> checkUnread(const CommandLine &line) {
  bool emulates = line.device == "emulate", emits = !line.emit.empty(),
       saves = !line.saveBundle.empty();
  if (line.gemm != "nvptx" && (line.gemm != "cublaslt" || !emits))
    return "--gemm=" + line.gemm + ": expected nvptx, or with --emit cublaslt";
  if (emits && saves)
    return std::string("--emit prints kernels, --save-bundle writes them: give one of them");
  if (line.target.getNumOccurrences() && !emulates && !emits && !saves)
    return std::string(
        "--target is of --device=emulate, --emit and --save-bundle, none of which is asked for");
  const cl::Option *ofRuns[] = {&line.device,      &line.targetCpu, &line.alsoCpu, &line.tolerance,
                                &line.errorFactor, &line.floor,     &line.times,   &line.widen,
                                &line.bench,       &line.saveImage};
  for (const cl::Option *option : ofRuns)
    if (option->getNumOccurrences() && (emits || saves))
      return "--" + option->ArgStr.str() + " is of runs, and " +
             (emits ? "--emit" : "--save-bundle") + " only compiles: leave it out";
  for (const cl::Option *option : {static_cast<const cl::Option *>(&line.alsoCpu),
                                   static_cast<const cl::Option *>(&line.saveImage)})
    if (option->getNumOccurrences() && emulates)
      return "--" + option->ArgStr.str() +
             " is of kernels for a CPU: leave it out with --device=emulate";
  return std::nullopt;
}

Options fsdp::parseOptions(int argc, char **argv) {
  static CommandLine line; // the linker inside this process resets registered options
  cl::HideUnrelatedOptions(line.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    std::exit(2);
  std::optional<std::string> problem = checkValues(line);
  if (!problem)
    problem = checkUnread(line);
  if (problem) {
    llvm::errs() << "fsdp-kernel-test: " << *problem << "\n";
    std::exit(2);
  }
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
                     {},
                     {},
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
