//===- fsdp-opt.cpp - Run passes on IR --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs mlir-opt with the fsdp dialect and the passes of this project. The --help of mlir-opt lists
// about 1200 options of LLVM. The --help of fsdp-opt describes the first steps instead, and lists
// the passes of this project.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/ParserGuard.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview = R"help(fsdp-opt: run passes on IR

  fsdp-opt [FILE.mlir] --PASS... [-o FILE]       without FILE or -o: stdin and stdout

  Passes run in the order of the command line. Passes of this project begin with --fsdp- and are
  listed below; docs/reference/passes.md documents what each requires, ensures and keeps. Passes of MLIR
  (--canonicalize, --cse, ...) can be combined with them.

EXAMPLES
  Form units and insert gathers
    fsdp-modelgen gpt2 --layers=2 --hidden=16 --heads=2 --vocab=23 --seq=6 -o gpt.mlir
    fsdp-compile gpt.mlir --compile-to=import -o import.mlir
    fsdp-opt import.mlir --fsdp-form-units=mesh=shard=2 --fsdp-insert-unshard

  Options of a pass follow '='; several are in braces
    fsdp-opt import.mlir --fsdp-form-units="mesh=shard=4 auto-wrap-policy=none"
    fsdp-opt import.mlir --pass-pipeline="builtin.module(fsdp-form-units{mesh=shard=4},canonicalize)"

  Print the changes of each pass (statistics need an LLVM with LLVM_FORCE_ENABLE_STATS or assertions)
    fsdp-opt import.mlir --fsdp-form-units=mesh=shard=2 --mlir-print-ir-after-all --mlir-print-ir-after-change
    fsdp-opt import.mlir --fsdp-form-units=mesh=shard=2 --mlir-print-ir-after-all --mlir-print-ir-tree-dir=dump
    fsdp-opt import.mlir --fsdp-form-units=mesh=shard=2 --mlir-pass-statistics --mlir-timing

  Check that IR is valid and round-trips; check expected errors
    fsdp-opt file.mlir --verify-roundtrip
    fsdp-opt invalid.mlir --split-input-file --verify-diagnostics

  All options of MLIR and LLVM:  fsdp-opt --help-list
  The IR after every stage:  fsdp-compile gpt.mlir --mesh=shard=2 --dump-phases-to=DIR -o gpt.fsdp

Exit codes: 0 success, 1 the IR is invalid or a pass failed, 2 bad usage or a file that cannot be opened.

)help";

/// If an argument requests the help or the version, prints the requested text and returns true.
static bool printedOurHelp(int argc, char **argv) {
  if (!fsdp::printedHelp(argc, argv, "fsdp-opt", overview))
    return false;
  llvm::StringRef last = argc > 1 ? argv[1] : "";
  if (last.ends_with("version"))
    return true;
  fsdp::registerPasses();
  printRegisteredPasses();
  return true;
}

static int badUsage(const llvm::Twine &message) {
  llvm::errs() << "fsdp-opt: error: " << message << "\n";
  return 2;
}

/// If LLVM was built without statistics, warns that the report of --mlir-pass-statistics is empty.
static void warnOfEmptyStatistics() {
#if !LLVM_ENABLE_STATS
  cl::Option *option = cl::getRegisteredOptions().lookup("mlir-pass-statistics");
  if (option && option->getNumOccurrences())
    llvm::errs()
        << "fsdp-opt: warning: --mlir-pass-statistics prints nothing with this LLVM, which was "
           "built without statistics (LLVM_FORCE_ENABLE_STATS)\n";
#endif
}

/// Runs the passes as mlir-opt does. If the parser crashes before the first pass, reports an error.
static LogicalResult process(std::unique_ptr<llvm::MemoryBuffer> file, StringRef output,
                             const DialectRegistry &known) {
  DialectRegistry registry;
  known.appendTo(registry);
  std::string text;
  llvm::raw_string_ostream os(text);
  fsdp::ParserGuard guard("fsdp-opt", file->getBufferIdentifier(), file->getBufferSize());
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions(), asked = config;
  config.setPassPipelineSetupFn([&](PassManager &pm) {
    guard.release();
    return asked.setupPassPipeline(pm);
  });
  bool toFile = output != "-";
  if (failed(MlirOptMain(toFile ? static_cast<llvm::raw_ostream &>(os) : llvm::outs(),
                         std::move(file), registry, config)))
    return failure();
  std::string problem = toFile ? fsdp::writeOutput(output, text) : "";
  if (!problem.empty())
    llvm::errs() << "fsdp-opt: error: " << problem << "\n";
  return success(problem.empty());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  fsdp::startTool("fsdp-opt");
  if (printedOurHelp(argc, argv))
    return 0;
  DialectRegistry registry;
  fsdp::registerDialects(registry);
  registerAllPasses();
  fsdp::registerPasses();
  cl::opt<std::string> input(cl::Positional, cl::desc("[FILE.mlir]"), cl::init("-"));
  cl::opt<std::string> output("o", cl::desc("Where to write"), cl::value_desc("FILE"),
                              cl::init("-"));
  std::string header = registerCLIOptions("fsdp-opt", registry);
  if (!cl::ParseCommandLineOptions(argc, argv, header, &llvm::errs()))
    return 2;
  std::string why;
  std::unique_ptr<llvm::MemoryBuffer> file;
  if (input != "-" && !(file = fsdp::openModel(input, fsdp::ParseLimits().bytes, why)))
    return badUsage(why); // standard input is read later, after all other checks
  if (std::optional<std::string> problem = fsdp::whyNotWritable(output))
    return badUsage(*problem);
  warnOfEmptyStatistics();
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  if (!file && !(file = openInputFile(input, &why)))
    return badUsage(why);
  return asMainReturnCode(process(std::move(file), output, registry));
}
