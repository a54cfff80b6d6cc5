//===- OptionTable.cpp - The options by name --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   FSDP_SHARD_OPTION(int64_t, gradAccum, "grad-accum", 1, ...)
//     struct     ShardOptions { int64_t gradAccum = 1; }                      Options.h
//     row        {"grad-accum", read: text -> options.shard.gradAccum, print: the inverse}
//
//===----------------------------------------------------------------------===//

#include "fsdp/Options/OptionTable.h"
#include "fsdp/Options/Defaults.h"
#include "fsdpcommon/LocatedJson.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using llvm::StringRef;

/// Returns true if a number and its inverse are normal numbers in f32.
static bool isFactor(double number) { return number >= 1e-30 && number <= 1e30; }

static std::string checkMagnitude(double number) {
  return number == 0 || isFactor(number) ? "" : "expected 0 or a number from 1e-30 to 1e30";
}

static std::string checkDecay(double number) {
  return number >= 0 && number < 1 ? "" : "expected a number of at least 0 and below 1";
}

static std::string checkInteger(StringRef text) {
  int64_t number;
  return text.empty() || !text.getAsInteger(10, number) ? "" : "expected an integer";
}

static std::string checkLossScale(StringRef text) {
  double scale;
  bool isFine = text.empty() || text == "dynamic" || text == "none" ||
                (llvm::to_float(text, scale) && isFactor(scale));
  return isFine ? "" : "expected dynamic, none or a number from 1e-30 to 1e30";
}

static std::string checkDivisor(StringRef text) {
  double divisor;
  bool isFine = text == "average" || text == "tokens" || text == "sum" ||
                (llvm::to_float(text, divisor) && isFactor(divisor));
  return isFine ? ""
                : "expected average (over ranks and micro-batches), tokens (that count in the "
                  "loss), sum, or a number from 1e-30 to 1e30 to divide the sum by";
}

static bool isAdamW(const StepOptions &o) { return o.update.optimizer == OptimizerKind::AdamW; }
static bool isForCpu(const StepOptions &o) { return o.codegen.isForCpu(); }
static bool isForGpu(const StepOptions &o) { return !o.codegen.isForCpu(); }

/// Returns true if collectives are scheduled. With --what-if and --search, collectives are
/// always scheduled.
static bool isScheduled(const StepOptions &o) {
  return o.plan.overlap || !o.driver.whatIf.empty() || o.driver.search > 0;
}

/// Returns true if the mesh has the axis `axis`, or if --search may choose one.
static bool hasAxis(const StepOptions &o, const char *axis) {
  return o.driver.search > 0 || (o.shard.mesh + o.driver.alsoMesh).find(axis) != std::string::npos;
}
static bool hasContext(const StepOptions &o) { return hasAxis(o, "context="); }
static bool hasTensor(const StepOptions &o) { return hasAxis(o, "tensor="); }

/// Returns true if --explain prints the times of kernels, which depend on the cluster.
static bool explainsTimes(const StepOptions &o) {
  return isForGpu(o) &&
         (o.driver.explain == ExplainKind::Text || o.driver.explain == ExplainKind::Json);
}

/// Returns true if the strategy keeps parameters gathered until the backward.
static bool keepsParameters(const StepOptions &o) {
  return o.shard.strategy != ShardingStrategy::FullShard &&
         o.shard.strategy != ShardingStrategy::HybridShard &&
         o.shard.strategy != ShardingStrategy::Hfsdp;
}

template <typename T>
static constexpr OptionKind kindOf =
    std::is_same_v<T, bool>                       ? OptionKind::flag
    : std::is_same_v<T, int64_t>                  ? OptionKind::integer
    : std::is_same_v<T, double>                   ? OptionKind::number
    : std::is_same_v<T, std::vector<std::string>> ? OptionKind::list
                                                  : OptionKind::word;

template <typename T>
static OptionRow makeRow(StringRef name, Stage stage, T &(*get)(StepOptions &), OptionGroup group,
                         OptionLevel level, StringRef valueName, StringRef help) {
  OptionRow row{name, stage, unsigned(stage), group, level, kindOf<T>, valueName, help};
  if constexpr (std::is_enum_v<T>)
    row.words = getWords<T>();
  if constexpr (std::is_same_v<T, bool>)
    row.alone = "true";
  row.read = [get](StepOptions &options, StringRef text) { return readValue(text, get(options)); };
  row.print = [get](const StepOptions &options) {
    return printValue(get(const_cast<StepOptions &>(options)));
  };
  return row;
}

OptionRow OptionRow::readBy(std::initializer_list<Stage> more) && {
  for (Stage reader : more)
    readers |= unsigned(reader);
  return std::move(*this);
}

OptionRow OptionRow::range(int64_t least, int64_t most, const char *unit) && {
  std::string expected = "expected ";
  if (kind == OptionKind::word)
    expected +=
        "a number of bytes of at least " + std::to_string(least) + ", such as 512k, 13.5M or 2G";
  else if (most == INT64_MAX)
    expected += "a number of at least " + std::to_string(least);
  else
    expected += "a number from " + std::to_string(least) + " to " + std::to_string(most);
  expected += unit;
  auto printed = print;
  return std::move(*this).check([=](const StepOptions &options) -> std::string {
    int64_t number;
    std::string text = printed(options).front();
    return !StringRef(text).getAsInteger(10, number) && number >= least && number <= most
               ? ""
               : expected;
  });
}

OptionRow OptionRow::check(std::function<std::string(const StepOptions &)> check) && {
  checks.push_back(std::move(check));
  return std::move(*this);
}

OptionRow OptionRow::needs(std::function<bool(const StepOptions &)> isMet,
                           const char *otherwise) && {
  conditions.push_back({std::move(isMet), otherwise, /*holdsForFiles=*/false});
  return std::move(*this);
}

OptionRow OptionRow::demands(std::function<bool(const StepOptions &)> isMet,
                             const char *otherwise) && {
  conditions.push_back({std::move(isMet), otherwise, /*holdsForFiles=*/true});
  return std::move(*this);
}

OptionRow OptionRow::meansAlone(const char *text) && {
  alone = text;
  return std::move(*this);
}

OptionRow OptionRow::isNoPlan() && {
  isPlan = false;
  return std::move(*this);
}

std::string OptionRow::printOne(const StepOptions &options) const {
  return llvm::join(print(options), ",");
}

/// Conditions under which an option that configures ptxas has an effect.
#define ASSEMBLES                                                                                  \
  .isNoPlan()                                                                                      \
      .needs(isForGpu, " needs GPU kernels: give --target=sm_80, sm_90a or sm_100a")               \
      .needs([](const StepOptions &o) { return !o.driver.noCode; },                                \
             " has no effect with --no-code, which writes no machine code")                        \
      .needs([](const StepOptions &o) { return o.driver.emit != EmitKind::KernelMlir; },           \
             " has no effect with --emit=kernel-mlir, which writes no machine code")               \
      .needs([](const StepOptions &o) { return o.driver.emit != EmitKind::Clocks; },               \
             " has no effect with --emit=clocks, which writes no machine code")                    \
      .needs(                                                                                      \
          [](const StepOptions &o) {                                                               \
            return o.driver.emit != EmitKind::None ||                                              \
                   (!o.driver.output.empty() && o.driver.compileTo.empty());                       \
          },                                                                                       \
          " has no effect without machine code: give -o OUT.fsdp or --emit")

llvm::ArrayRef<OptionRow> mlir::fsdp::getOptionRows() {
  static const std::vector<OptionRow> rows = [] {
    std::vector<OptionRow> rows;
#define FSDP_OPTION(stage, type, member, name, init, group, level, value, help, ...)               \
  rows.push_back(makeRow<type>(                                                                    \
      name, Stage::stage, [](StepOptions &o) -> type & { return o.stage.member; },                 \
      OptionGroup::group, OptionLevel::level, value, help) __VA_ARGS__);
#include "fsdp/Options/Options.def"
    return rows;
  }();
  return rows;
}

const OptionRow *mlir::fsdp::findOption(StringRef name) {
  static const llvm::StringMap<const OptionRow *> index = [] {
    llvm::StringMap<const OptionRow *> index;
    for (const OptionRow &row : getOptionRows())
      index[row.name] = &row;
    return index;
  }();
  return index.lookup(name);
}

std::optional<std::string> mlir::fsdp::findNearest(StringRef name) {
  std::optional<std::string> nearest;
  unsigned least = std::max<unsigned>(2, name.size() / 3) + 1;
  for (const OptionRow &row : getOptionRows())
    if (unsigned distance = row.name.edit_distance(name, /*AllowReplacements=*/true, least);
        distance < least) {
      least = distance;
      nearest = row.name.str();
    }
  return nearest;
}

/// Shortens a text that the user wrote, and removes control characters, for a message.
static std::string show(StringRef text) { return fsdpcommon::shortText(text.str(), 200); }

/// Returns the spelling of an option: "--name", or "-n" if the name has one letter.
static std::string spell(StringRef name) { return (name.size() == 1 ? "-" : "--") + show(name); }

std::optional<std::string> mlir::fsdp::setOption(StepOptions &options, StringRef name,
                                                 StringRef text, OptionOrigin origin) {
  const OptionRow *row = findOption(name);
  if (!row) {
    std::optional<std::string> nearest = findNearest(name);
    return "no such option: " + spell(name) + (nearest ? "; did you mean --" + *nearest + "?" : "");
  }
  if (std::optional<std::string> expected = row->read(options, text))
    return spell(name) + "=" + show(text) + ": " + *expected;
  options.origins[name] = origin;
  std::string &given = options.texts[name];
  bool appends = row->kind == OptionKind::list && !given.empty();
  given = appends ? given + "," + text.str() : text.str();
  return std::nullopt;
}

std::optional<std::string> mlir::fsdp::checkValues(const StepOptions &options) {
  for (const OptionRow &row : getOptionRows()) {
    if (!options.isGiven(row.name))
      continue;
    for (const auto &check : row.checks)
      if (std::string expected = check(options); !expected.empty())
        return spell(row.name) + "=" + show(options.texts.lookup(row.name)) + ": " + expected;
  }
  return std::nullopt;
}

/// Returns `text` with {name} replaced by the value of the option `name`, as the user wrote it.
static std::string fillIn(StringRef text, const StepOptions &options) {
  std::string filled;
  while (!text.empty()) {
    auto [before, rest] = text.split('{');
    filled += before;
    auto [name, after] = rest.split('}');
    if (const OptionRow *row = findOption(name))
      filled += options.isGiven(name) ? options.texts.lookup(name) : row->printOne(options);
    text = after;
  }
  return filled;
}

bool mlir::fsdp::hasEffect(const OptionRow &row, const StepOptions &options) {
  return llvm::all_of(row.conditions,
                      [&](const OptionCondition &condition) { return condition.isMet(options); });
}

std::optional<std::string> mlir::fsdp::findUnread(const StepOptions &options) {
  for (const OptionRow &row : getOptionRows())
    for (const OptionCondition &condition : row.conditions) {
      OptionOrigin origin = options.getOrigin(row.name);
      bool counts = origin == OptionOrigin::CommandLine ||
                    (origin == OptionOrigin::File && condition.holdsForFiles);
      if (counts && !condition.isMet(options))
        return spell(row.name) + fillIn(condition.otherwise, options);
    }
  return std::nullopt;
}

void mlir::fsdp::inferOptions(StepOptions &options) {
  if (!options.shard.wrapFile.empty() && !options.isGiven("auto-wrap-policy"))
    options.shard.policy = WrapPolicy::Manual;
}

std::string mlir::fsdp::getDefaultText(StringRef name) {
  const OptionRow *row = findOption(name);
  assert(row && "an option of a pass without a row in Options.def");
  return row->printOne(StepOptions());
}
