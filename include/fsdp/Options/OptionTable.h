//===- OptionTable.h - The options by name ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Provides the rows of Options.def as a table at run time. The command line, configuration files,
// --what-if and --help of fsdp-compile use this table. So do the pipelines of fsdp-opt, and the
// code that writes docs/reference/options.md.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_OPTIONTABLE_H
#define FSDP_OPTIONS_OPTIONTABLE_H

#include "fsdp/Options/Options.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace mlir::fsdp {

/// The stages in their order. Each stage is one bit of a set of stages. `driver` is the code of
/// fsdp-compile outside the stages.
enum class Stage : unsigned {
  import = 1,
  shard = 2,
  differentiate = 4,
  update = 8,
  fuse = 16,
  plan = 32,
  codegen = 64,
  package = 128,
  driver = 256
};
constexpr unsigned allStages = 255;

/// Headings under which the help lists options.
enum class OptionGroup { Model, Sharding, Memory, Overlap, Precision, Training, Target, Output };

/// Whether `--help` lists the option (Common), or only `--help-hidden` (Expert).
enum class OptionLevel { Common, Expert };

/// Kind of an option's value in a configuration file.
enum class OptionKind { flag, integer, number, word, list };

/// A condition without which an option has no effect.
struct OptionCondition {
  std::function<bool(const StepOptions &)> isMet;
  /// Text of the error if the condition is not met. The error is `--name` followed by this text, in
  /// which {OTHER} is replaced by the value of the option OTHER.
  llvm::StringRef otherwise;
  /// True if an unmet condition is also an error for an option that a configuration file sets.
  bool holdsForFiles;
};

struct OptionRow {
  llvm::StringRef name;
  Stage stage;      ///< stage whose structure in Options.h has a member for the option
  unsigned readers; ///< set of stages that read the option
  OptionGroup group;
  OptionLevel level;
  OptionKind kind;
  llvm::StringRef valueName, help;
  /// Words for the values if the type of the option is an enum.
  llvm::ArrayRef<OptionWord> words = {};
  /// Whether the value of the option can change a plan. If so, --what-if may set the option.
  bool isPlan = true;
  /// The value that `--name` sets if no value follows it. Nothing if the option requires a value.
  std::optional<llvm::StringRef> alone = {};
  std::vector<OptionCondition> conditions = {};
  /// Functions that check the value. If the value is valid, each function returns an empty string.
  /// Otherwise the function returns a text that lists the valid values.
  std::vector<std::function<std::string(const StepOptions &)>> checks = {};

  std::function<std::optional<std::string>(StepOptions &, llvm::StringRef)> read = {};
  std::function<std::vector<std::string>(const StepOptions &)> print = {};

  /// Returns the value as one string. Commas separate the elements of a list.
  std::string printOne(const StepOptions &options) const;
  bool isReadBy(unsigned stages) const { return (readers & stages) != 0; }

  // Modifiers for rows of Options.def. The header of Options.def documents them.
  OptionRow readBy(std::initializer_list<Stage> more) &&;
  OptionRow range(int64_t least, int64_t most, const char *unit = "") &&;
  OptionRow check(std::function<std::string(const StepOptions &)> check) &&;
  OptionRow needs(std::function<bool(const StepOptions &)> isMet, const char *otherwise) &&;
  OptionRow demands(std::function<bool(const StepOptions &)> isMet, const char *otherwise) &&;
  OptionRow meansAlone(const char *text) &&;
  OptionRow isNoPlan() &&;
};

/// Returns all rows, in the order of Options.def.
llvm::ArrayRef<OptionRow> getOptionRows();

/// Returns the row with this name, or null.
const OptionRow *findOption(llvm::StringRef name);

/// Sets the option `name` to the value in `text`, which comes from `origin`. Returns an error
/// "--name=text: expected ...", or nothing.
std::optional<std::string> setOption(StepOptions &options, llvm::StringRef name,
                                     llvm::StringRef text, OptionOrigin origin);

/// Checks the value of each option that the user set, independently of the values of other options.
/// Returns the first error "--name=value: expected ...", or nothing.
std::optional<std::string> checkValues(const StepOptions &options);

/// Returns an error "--name is of --other, ..." if an option that the user set has no effect.
/// Returns nothing if every option that the user set has an effect. For an option that a
/// configuration file sets, checks only the conditions whose `holdsForFiles` is true.
std::optional<std::string> findUnread(const StepOptions &options);

/// Returns whether all conditions of `row` are met, so that the option has an effect.
bool hasEffect(const OptionRow &row, const StepOptions &options);

/// Returns the option name nearest to an unknown name, or nothing if no name is near.
std::optional<std::string> findNearest(llvm::StringRef name);

/// Sets those options whose values follow from other options, unless the user set them. For
/// example, --wrap-file implies --auto-wrap-policy=manual.
void inferOptions(StepOptions &options);

/// Prints the options by group. If `all` is true, prints all options with their full help. If `all`
/// is false, prints only the common options, with the first sentence of their help.
void printOptionHelp(llvm::raw_ostream &os, bool all);

/// Prints docs/reference/options.md.
void printOptionsPage(llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_OPTIONS_OPTIONTABLE_H
