//===- PassConfiguration.cpp - Options of passes by name --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Options/PassConfiguration.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The options of a pipeline. At least one stage of the pipeline reads each of these options.
struct StepPipelineOptions : PassPipelineOptions<StepPipelineOptions> {
  explicit StepPipelineOptions(unsigned stages) {
    for (const OptionRow &row : getOptionRows()) {
      if (!row.isReadBy(stages))
        continue;
      if (row.kind == OptionKind::list)
        lists.push_back({&row, std::make_unique<ListOption<std::string>>(
                                   *this, row.name, llvm::cl::desc(row.help))});
      else
        texts.push_back({&row, std::make_unique<Option<std::string>>(
                                   *this, row.name, llvm::cl::desc(row.help),
                                   row.alone ? llvm::cl::ValueOptional : llvm::cl::ValueRequired)});
    }
  }

  /// Sets those fields of `options` that the text of this pipeline sets. Returns a message if the
  /// text is invalid, or nothing.
  std::optional<std::string> set(StepOptions &options) const {
    for (const auto &[row, option] : texts) {
      if (!option->hasValue())
        continue;
      StringRef value = option->getValue().empty() && row->alone ? *row->alone : option->getValue();
      if (auto problem = setOption(options, row->name, value, OptionOrigin::CommandLine))
        return problem;
    }
    for (const auto &[row, list] : lists)
      for (const std::string &element : **list)
        if (auto problem = setOption(options, row->name, element, OptionOrigin::CommandLine))
          return problem;
    if (auto problem = checkValues(options))
      return problem;
    inferOptions(options);
    return std::nullopt;
  }

private:
  std::vector<std::pair<const OptionRow *, std::unique_ptr<Option<std::string>>>> texts;
  std::vector<std::pair<const OptionRow *, std::unique_ptr<ListOption<std::string>>>> lists;
};
} // namespace

/// Adds quotes to `value` if a pipeline could not be parsed without the quotes.
static std::string quote(StringRef value) {
  char mark = value.contains('\'') ? '"' : '\'';
  return value.find_first_of(" ,{}'\"") == StringRef::npos ? value.str()
                                                           : mark + value.str() + mark;
}

/// Sets the option `name` of a pass. Does nothing if the pass has no such option.
static void assign(Pass &pass, StringRef name, ArrayRef<std::string> values) {
  if (values.empty())
    return;
  std::string text = name.str() + "=";
  llvm::interleave(values, [&](StringRef value) { text += quote(value); }, [&] { text += ","; });
  auto onError = [&](const Twine &problem) {
    if (!StringRef(problem.str()).contains("no such option"))
      llvm::report_fatal_error(Twine(pass.getArgument()) + ": " + text + ": " + problem);
    return failure();
  };
  (void)pass.initializeOptions(text, onError);
}

std::unique_ptr<Pass> fsdp::configure(std::unique_ptr<Pass> pass, const StepOptions &options,
                                      ArrayRef<PassSetting> more) {
  for (const OptionRow &row : getOptionRows())
    assign(*pass, row.name, row.print(options));
  for (const auto &[name, value] : more)
    assign(*pass, name, value);
  return pass;
}

void fsdp::registerStepPipeline(StringRef name, StringRef description, unsigned stages,
                                void (*build)(OpPassManager &, const StepOptions &),
                                std::optional<std::string> (*check)(const StepOptions &)) {
  registerPassPipeline(
      name, description,
      [=](OpPassManager &pm, StringRef text,
          function_ref<LogicalResult(const Twine &)> emitError) -> LogicalResult {
        StepPipelineOptions parsed(stages);
        if (failed(parsed.parseFromString(text)))
          return failure();
        StepOptions options;
        if (std::optional<std::string> problem = parsed.set(options))
          return emitError(*problem);
        if (std::optional<std::string> problem = check(options))
          return emitError(*problem);
        build(pm, options);
        return success();
      },
      [=](function_ref<void(const mlir::detail::PassOptions &)> print) {
        print(StepPipelineOptions(stages));
      });
}
