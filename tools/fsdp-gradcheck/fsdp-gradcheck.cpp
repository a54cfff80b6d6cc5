//===- fsdp-gradcheck.cpp - Check gradients by finite differences ---------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Read the functions, reduce each to a loss, differentiate      Subject
// 2. Compile loss (f64) and gradient, independently of Codegen     Engine, Decompose
// 3. Compare along many directions; print a table                  Check
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>
#include <optional>

using namespace mlir;
using namespace mlir::fsdp::gradcheck;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    R"(fsdp-gradcheck: check gradients by finite differences

  Every public function of the file is differentiated by each of its float arguments
  (by its trainable fsdp.param arguments where some are marked) and the gradients are
  compared with central differences in f64, through upstream loops and libm.

    fsdp-gradcheck model.mlir
    fsdp-modelgen gpt2 --layers=2 --hidden=16 --heads=2 --vocab=23 --seq=6 --dtype=f64 -o - | fsdp-gradcheck

  Argument attributes: gradcheck.range = [lo, hi] of floats (default -1, 1; from fsdp.init
  if it is given), fsdp.limit or gradcheck.limit = n for integers in [0, n),
  gradcheck.ignore = i for an id that the loss ignores. Results that are no scalar get random weights.

  Exit codes: 0 all gradients agree, 1 some differ or the table could not be written, 2 bad usage or input.
)";

namespace {
struct CommandLine {
  cl::OptionCategory category{"Options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("[file.mlir]"), cl::init("-"),
                             cl::cat(category)};
  cl::opt<std::string> function{"function", cl::desc("check this function only"),
                                cl::cat(category)};
  cl::opt<double> tolerance{
      "tolerance", cl::init(1e-6), cl::cat(category),
      cl::desc(
          "largest relative error in f64 (default 1e-6); narrower types allow a few roundings")};
  cl::opt<double> step{"step", cl::init(1e-4),
                       cl::desc("step size of the differences (default 1e-4)"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::init(1), cl::desc("seed of all random values (default 1)"),
                         cl::cat(category)};
  cl::opt<int64_t> all{"all-elements", cl::init(64), cl::cat(category),
                       cl::desc("check all elements of arguments up to this size (default 64)")};
  cl::opt<int64_t> elements{"elements", cl::init(6), cl::cat(category),
                            cl::desc("number of elements checked in larger arguments (default 6)")};
  cl::opt<int64_t> directions{
      "directions", cl::init(3), cl::cat(category),
      cl::desc("number of random directions checked in larger arguments (default 3)")};
  cl::opt<unsigned> sabotage{
      "sabotage", cl::init(0), cl::cat(category),
      cl::desc("change the result of the n-th op of each backward by 1e-4: the check must fail")};
  cl::opt<bool> widen{"widen", cl::desc("convert all floats to f64 before differentiation"),
                      cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("print failures and the summary only"), cl::cat(category)};
};
} // namespace

/// Returns an error if the number that an option sets is out of range, and otherwise nothing.
static std::optional<std::string> checkUsage(const CommandLine &options) {
  auto found = [](const auto &option) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "--" << option.ArgStr << "="
        << llvm::format("%g", static_cast<double>(option.getValue())) << ": expected ";
    return text;
  };
  for (const cl::opt<double> *number : {&options.step, &options.tolerance})
    if (!(*number > 0 && std::isfinite(*number)))
      return found(*number) + "a finite number above 0";
  for (const cl::opt<int64_t> *count : {&options.all, &options.elements, &options.directions})
    if (*count < 0)
      return found(*count) + "0 or more";
  if (options.elements == 0 && options.directions == 0)
    return "--elements=0 and --directions=0 leave larger arguments unchecked: expected one of "
           "them above 0";
  return std::nullopt;
}

static void print(const Row &row) {
  std::string type;
  llvm::raw_string_ostream(type) << row.type;
  if (!row.notFinite.empty()) {
    llvm::outs() << llvm::format("%-4s %-20s %-28s %-22s not finite: %s\n", "FAIL",
                                 row.function.c_str(), row.argument.c_str(), type.c_str(),
                                 row.notFinite.c_str());
    return;
  }
  llvm::outs() << llvm::format(
      "%-4s %-20s %-28s %-22s %4lld checked  |g| %-9.3g error %-9.2g (bound %.1g)\n",
      row.ok ? "ok" : "FAIL", row.function.c_str(), row.argument.c_str(), type.c_str(),
      static_cast<long long>(row.numChecked), row.largest, row.worst, row.bound);
}

/// Derives the limits of ids from the sizes of the tables in which the ids are looked up. Random
/// ids are drawn below these limits. Also replaces the markers of stopped gradients by ops.
static LogicalResult boundIds(ModuleOp module) {
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  pm.addPass(fsdp::createReadStopMarkersPass());
  pm.addNestedPass<func::FuncOp>(fsdp::createRefuseUnwrittenPass());
  pm.addNestedPass<func::FuncOp>(fsdp::createBoundIdsPass());
  return pm.run(module);
}

static int run(const CommandLine &options) {
  DialectRegistry registry;
  fsdp::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // Other tools may have given the arguments attributes of unknown dialects.
  context.allowUnregisteredDialects();
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources; // source lines that diagnostics quote
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = fsdp::parseModel(options.input, &context);
  if (!module || failed(checkSizes(*module)) || failed(boundIds(*module)))
    return 2;
  FailureOr<Subject> subject =
      prepare(std::move(module), options.function, options.widen, options.sabotage);
  if (failed(subject))
    return 2;
  if (subject->functions.empty()) {
    llvm::errs() << "fsdp-gradcheck: error: '" << options.input << "': expected a public function";
    if (!options.function.empty())
      llvm::errs() << " @" << options.function;
    llvm::errs() << "\n";
    return 2;
  }
  std::unique_ptr<Engine> forward = Engine::create(std::move(subject->forward));
  std::unique_ptr<Engine> gradient = Engine::create(std::move(subject->gradient));
  if (!forward || !gradient)
    return 2;
  CheckOptions check{options.tolerance, options.step,     options.seed,
                     options.all,       options.elements, options.directions};
  int64_t total = 0, good = 0, notFinite = 0;
  double worst = 0;
  // The highest number of significand bits of all rows. The summary prints the largest error of the
  // rows with this number of bits.
  unsigned precision = 0;
  for (const Function &function : subject->functions) {
    FailureOr<std::vector<Row>> rows = fsdp::gradcheck::check(function, *forward, *gradient, check);
    if (failed(rows))
      return 2;
    for (const Row &row : *rows) {
      ++total;
      good += row.ok;
      notFinite += !row.notFinite.empty();
      worst = row.precision > precision    ? row.worst
              : row.precision == precision ? std::max(worst, row.worst)
                                           : worst;
      precision = std::max(precision, row.precision);
      if (!row.ok || !options.quiet)
        print(row);
    }
  }
  const char *type = precision == 53 ? "f64" : precision == 24 ? "f32" : "16 bits";
  llvm::outs() << llvm::format("%lld of %lld gradients agree; worst relative error in %s %.2g",
                               static_cast<long long>(good), static_cast<long long>(total), type,
                               worst);
  if (notFinite)
    llvm::outs() << "; " << notFinite << " not finite";
  llvm::outs() << "\n";
  return good == total ? 0 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  fsdp::startTool("fsdp-gradcheck");
  fsdp::setVersion("fsdp-gradcheck");
  CommandLine options;
  cl::HideUnrelatedOptions(options.category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return 2;
  if (std::optional<std::string> problem = checkUsage(options)) {
    llvm::errs() << "fsdp-gradcheck: error: " << *problem << "\n";
    return 2;
  }
  return run(options);
}
