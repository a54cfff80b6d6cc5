//===- SearchAnswer.cpp - The table of --search -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Import the model, search (PlanSearch.h), and print one row for each plan that fits, fastest
//    first. A row has the estimated time of a step, the bytes of the arena, what limits the time,
//    and the options.
// 2. Print the plans that do not fit, with the bytes that are missing. For a candidate that was not
//    planned, these are the least bytes that are missing.
// 3. Write the configuration file of the best plan: each option of a plan whose value is not the
//    default.
//
//===----------------------------------------------------------------------===//

#include "SearchAnswer.h"
#include "ModelInput.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Package/Package.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/PlanSearch.h"
#include "fsdp/Pipelines/Registration.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <chrono>

using namespace mlir;
using namespace mlir::fsdp;
using State = SearchedPlan::State;

/// Largest number of rows of each list, unless every candidate is planned.
static constexpr size_t maxRows = 20;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static std::string formatMilliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3f ms", 1e3 * seconds);
  return text;
}

static size_t count(const SearchResult &result, llvm::function_ref<bool(const SearchedPlan &)> is) {
  return llvm::count_if(result.plans, is);
}

/// Prints the first `most` rows, and how many others there are.
template <typename Print>
static void printRows(ArrayRef<const SearchedPlan *> rows, size_t most, StringRef others,
                      Print print) {
  for (const SearchedPlan *plan : rows.take_front(most))
    print(*plan);
  if (rows.size() > most)
    llvm::outs() << "  and " << rows.size() - most << " " << others << "\n";
}

static void printTable(const SearchResult &result, int64_t limit, size_t most) {
  SmallVector<const SearchedPlan *> rows;
  for (const SearchedPlan &plan : result.plans)
    if (plan.fits(limit))
      rows.push_back(&plan);
  // Plans that are equal are in the order of the candidates.
  llvm::sort(rows, [](const SearchedPlan *a, const SearchedPlan *b) {
    return std::tuple(a->seconds, a->bytes, a) < std::tuple(b->seconds, b->bytes, b);
  });
  llvm::outs() << llvm::right_justify("step", 18) << llvm::right_justify("arena bytes", 18)
               << "  limited by  options\n";
  printRows(rows, most, "slower plans", [](const SearchedPlan &plan) {
    llvm::outs() << llvm::right_justify(formatMilliseconds(plan.seconds), 18)
                 << llvm::right_justify(std::to_string(plan.bytes), 18) << "  "
                 << llvm::left_justify(plan.limit, 10) << "  " << llvm::join(plan.spelled, " ")
                 << "\n";
  });
}

static void printTooLarge(const SearchResult &result, int64_t limit, size_t most) {
  SmallVector<const SearchedPlan *> rows;
  for (const SearchedPlan &plan : result.plans)
    if (plan.state == State::tooLarge || (plan.state == State::planned && !plan.fits(limit)))
      rows.push_back(&plan);
  if (rows.empty())
    return;
  llvm::sort(rows, [](const SearchedPlan *a, const SearchedPlan *b) {
    return std::pair(a->bytes, a) < std::pair(b->bytes, b);
  });
  llvm::outs() << "\nDo not fit\n" << llvm::right_justify("missing bytes", 28) << "  options\n";
  printRows(rows, most, "that need more", [&](const SearchedPlan &plan) {
    llvm::outs() << llvm::right_justify((plan.state == State::tooLarge ? "at least " : "") +
                                            std::to_string(plan.bytes - limit),
                                        28)
                 << "  " << llvm::join(plan.spelled, " ") << "\n";
  });
}

/// Prints how many candidates are in the states `states` for each reason, and the first of them.
static void printReasons(const SearchResult &result, ArrayRef<State> states, StringRef title) {
  llvm::MapVector<StringRef, std::pair<size_t, const SearchedPlan *>> reasons;
  for (const SearchedPlan &plan : result.plans)
    if (llvm::is_contained(states, plan.state))
      ++reasons.try_emplace(plan.problem, 0, &plan).first->second.first;
  if (!reasons.empty())
    llvm::outs() << "\n" << title << "\n";
  for (auto [reason, found] : reasons)
    llvm::outs() << llvm::right_justify(std::to_string(found.first), 28) << "  " << reason
                 << "; such as " << llvm::join(found.second->spelled, " ") << "\n";
}

/// Prints the candidates that no stage could plan, and the numbers of candidates.
static void printRest(const SearchResult &result, int64_t limit) {
  auto countState = [&](State state) {
    return count(result, [=](const SearchedPlan &plan) { return plan.state == state; });
  };
  printReasons(result, State::refused, "Refused by the model");
  std::optional<double> least;
  for (const SearchedPlan &plan : result.plans)
    if (plan.state == State::tooSlow)
      least = std::min(least.value_or(plan.seconds), plan.seconds);
  printReasons(result, {State::unplannable, State::lost}, "Cannot be planned");
  llvm::outs() << "\n"
               << result.plans.size() << " candidates, " << countState(State::planned)
               << " planned";
  if (limit > 0)
    llvm::outs() << "; " << countState(State::tooLarge) << " not planned because they do not fit";
  if (least)
    llvm::outs() << "; " << countState(State::tooSlow)
                 << " not planned because a step takes at least " << formatMilliseconds(*least);
  if (size_t dropped = countState(State::dropped))
    llvm::outs() << "; " << dropped
                 << " dropped because their first schedule is slow and does not fit";
  if (size_t untried = countState(State::untried))
    llvm::outs() << "; " << untried
                 << " not planned because fewer ranks on 'context' or 'tensor' are faster";
  if (size_t refused = countState(State::refused))
    llvm::outs() << "; " << refused << " refused";
  if (size_t failures = countState(State::unplannable) + countState(State::lost))
    llvm::outs() << "; " << failures << " cannot be planned";
  llvm::outs() << "\n";
}

//===----------------------------------------------------------------------===//
// The configuration file
//===----------------------------------------------------------------------===//

/// Writes the options of a plan that are not the defaults as a file for --config.
static LogicalResult writeConfig(const StepOptions &options, StringRef path, MLIRContext &context) {
  for (const OptionRow &row : getOptionRows())
    for (const std::string &value : row.isPlan ? row.print(options) : std::vector<std::string>())
      if (!llvm::json::isUTF8(value))
        return emitError(UnknownLoc::get(&context))
               << "cannot write '" << path << "': the value '" << value << "' of --" << row.name
               << " is not UTF-8, so a JSON file cannot hold it";
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    for (const OptionRow &row : getOptionRows()) {
      std::vector<std::string> values = row.print(options);
      if (!row.isPlan || values == row.print(StepOptions()))
        continue;
      if (row.kind == OptionKind::list)
        json.attributeArray(row.name,
                            [&] { llvm::for_each(values, [&](auto &v) { json.value(v); }); });
      else if (row.kind == OptionKind::word)
        json.attribute(row.name, values.front());
      else // a flag or a number has the same spelling in JSON
        json.attributeBegin(row.name), json.rawValue(values.front()), json.attributeEnd();
    }
  });
  os << "\n";
  return writeFile(path, ArrayRef(text.data(), text.size()), UnknownLoc::get(&context));
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
/// Prints the progress of a search to stderr: on a terminal in one line, else a line every 10 s.
class ProgressPrinter {
public:
  ~ProgressPrinter() {
    if (isTerminal && width)
      llvm::errs() << "\r" << std::string(width, ' ') << "\r";
  }
  void print(const SearchProgress &progress) {
    auto now = std::chrono::steady_clock::now();
    if (!isTerminal && now - printed < std::chrono::seconds(10))
      return;
    printed = now;
    std::string text = describe(progress);
    if (isTerminal)
      llvm::errs() << "\r" << text << std::string(std::max(width, text.size()) - text.size(), ' ');
    else
      llvm::errs() << text << "\n";
    width = text.size();
  }

private:
  static std::string describe(const SearchProgress &progress) {
    using Phase = SearchProgress::Phase;
    std::string text = progress.phase == Phase::comparing ? "search, comparing axes of the mesh: "
                       : progress.phase == Phase::proving
                           ? "search, planning what may be faster: "
                           : "search, no plan fits, looking for the smallest arena: ";
    text += llvm::formatv("{0} of {1} candidates planned, {2} may be the best", progress.planned,
                          progress.candidates, progress.open);
    auto add = [&](size_t number, StringRef what) {
      if (number > 0)
        text += llvm::formatv(", {0} {1}", number, what);
    };
    add(progress.tooLarge, "too large");
    add(progress.tooSlow, "too slow");
    add(progress.dropped, "dropped after their first schedule");
    add(progress.refused, "refused by the model");
    add(progress.waiting, "on axes that are slower so far");
    if (progress.seconds > 0)
      text += llvm::formatv("; fastest step so far {0:f3} ms", progress.seconds * 1e3);
    return text;
  }

  const bool isTerminal = llvm::errs().is_displayed();
  size_t width = 0; ///< characters of the line on the terminal
  std::chrono::steady_clock::time_point printed = std::chrono::steady_clock::now();
};
} // namespace

/// Reports candidates whose processes ended early, if there are any.
static bool reportLost(const SearchResult &result) {
  auto isLost = [](const SearchedPlan &plan) { return plan.state == State::lost; };
  size_t lost = count(result, isLost);
  if (lost > 0)
    llvm::errs() << "error: --search: " << lost << " of " << result.plans.size()
                 << " candidates were not planned: " << llvm::find_if(result.plans, isLost)->problem
                 << "\nnote: the fastest plan may be one of them, so no file is written; a process "
                    "may end early if memory is short\n";
  return lost > 0;
}

/// Reports that no plan fits, and the bytes of the smallest plan.
static int failSearch(const SearchResult &result, const Cluster &cluster, int64_t limit) {
  llvm::errs() << "error: --search: ";
  if (!result.smallest) {
    llvm::errs() << "no candidate can be planned\n";
    return badUsage;
  }
  const SearchedPlan &plan = result.plans[*result.smallest];
  llvm::errs() << "no candidate fits: --memory-limit allows " << limit << " bytes ("
               << formatSize(limit) << "), the smallest arena that was found has " << plan.bytes
               << " bytes (" << formatSize(plan.bytes) << ")\n"
               << "note: it is that of " << llvm::join(plan.spelled, " ")
               << "; more ranks, a smaller batch in the model, or a larger limit can fit"
               << (cluster.hostBytesPerSecond == 0
                       ? "; --offload was not searched, because the cluster does not give "
                         "\"host_bytes_per_second\""
                       : "")
               << "\n";
  return 1;
}

/// Returns false and prints an error if an option is given for an axis that no mesh has.
static bool checkAxes(const StepOptions &options, const Cluster &cluster) {
  auto check = [&](bool isGiven, StringRef option, StringRef axis) {
    bool fits = !isGiven || searchHasAxis(options, cluster, axis);
    if (!fits)
      printUsageError(option + " has no effect with --search=" + Twine(options.driver.search) +
                      ": no mesh of the search has an axis '" + axis + "'; remove the option");
    return fits;
  };
  return check(options.shard.sequenceParallel, "--sequence-parallel", tensorAxis) &&
         check(options.shard.contextAttention != ContextAttention::Gather, "--context-attention",
               contextAxis);
}

int fsdp::answerSearch(const CommandLine &line) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  StepOptions options = line.options;
  const DriverOptions &driver = options.driver;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
    printDiagnostic(diag, line.file, driver.remarks);
    return success();
  });
  FailureOr<Cluster> cluster = loadCluster(&context, options.plan.cluster);
  if (failed(cluster))
    return badUsage;
  if (cluster->ranks() < static_cast<uint64_t>(driver.search)) {
    printUsageError("--search=" + Twine(driver.search) + ": expected at most the " +
                    Twine(cluster->ranks()) + " ranks of cluster '" + cluster->name + "'");
    return badUsage;
  }
  std::string whole = "shard=" + std::to_string(driver.search);
  auto ranks = static_cast<uint64_t>(driver.search);
  if (std::optional<std::string> reason =
          fsdpcommon::whyNotAlike(*cluster, whole, ranks, {ranks, 1, ranks})) {
    printUsageError("--search=" + Twine(driver.search) + ": " + options.plan.cluster + ": " +
                    *reason);
    return badUsage;
  }
  if (!checkAxes(options, *cluster))
    return badUsage;
  options.shard.mesh = whole;
  StepCompilation step{parseModel(driver.input, &context, getParseLimits(driver)), options};
  if (!step.module || failed(checkEarly(*step.module, options)) ||
      failed(runPhases(step, "import", "import")) ||
      (!driver.config.empty() && failed(line.file.checkBatch(*step.module, options))))
    return badUsage;
  SearchResult result = [&] {
    ProgressPrinter printer;
    return searchPlans(*step.module, options, *cluster,
                       [&](const SearchProgress &progress) { printer.print(progress); });
  }();
  for (const std::string &wrong : result.wrongBounds)
    llvm::errs() << "warning: internal error: a bound of --search is wrong: " << wrong
                 << "\nnote: the search has planned every candidate, which takes longer\n";
  int64_t limit = options.plan.memoryLimit;
  if (!result.best && limit == 0) {
    printRest(result, limit);
    llvm::outs().flush();
    return reportLost(result) ? 1 : failSearch(result, *cluster, limit);
  }
  size_t most = driver.searchAll ? result.plans.size() : maxRows;
  llvm::outs() << "Search: " << driver.search << (driver.search == 1 ? " rank" : " ranks")
               << " of '" << cluster->name << "'";
  if (limit > 0)
    llvm::outs() << ", arenas of at most " << limit << " bytes (" << formatSize(limit) << ")";
  llvm::outs() << "; times are estimates\n";
  if (result.best)
    printTable(result, limit, most);
  printTooLarge(result, limit, most);
  printRest(result, limit);
  llvm::outs().flush();
  if (reportLost(result))
    return 1;
  if (!result.best)
    return failSearch(result, *cluster, limit);
  if (driver.output.empty())
    return 0;
  return succeeded(writeConfig(result.plans[*result.best].options, driver.output, context)) ? 0 : 1;
}
