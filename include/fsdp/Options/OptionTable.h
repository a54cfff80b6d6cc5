//===- OptionTable.h - The options by name ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rows of Options.def at run time. The command line of fsdp-compile, its files of options,
// --what-if, the pipelines of fsdp-opt, the help and docs/reference/options.md all read this table.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_OPTIONTABLE_H
#define FSDP_OPTIONS_OPTIONTABLE_H

#include "fsdp/Options/Options.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace mlir::fsdp {

/// The stages, in their order, as bits of a set; the driver is what is around them.
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

/// Headings of the help.
enum class OptionGroup { Model, Sharding, Memory, Overlap, Precision, Training, Target, Output };

/// Whether `--help` lists an option, or `--help-hidden` alone.
enum class OptionLevel { Common, Expert };

/// What a file of options may give.
enum class OptionKind { flag, integer, number, word, list };

/// A reason for which an option has no effect.
struct OptionCondition {
  std::function<bool(const StepOptions &)> isMet;
  /// What is said after `--name` where it is not met; {name} stands for the value of another
  /// option.
  llvm::StringRef otherwise;
  bool holdsForFiles; ///< whether it is an error in a file of options, too
};

struct OptionRow {
  llvm::StringRef name;
  Stage stage;      ///< whose structure holds the value
  unsigned readers; ///< the set of stages that read it
  OptionGroup group;
  OptionLevel level;
  OptionKind kind;
  llvm::StringRef valueName, help;
  llvm::ArrayRef<OptionWord> words = {}; ///< of an enum
  bool isPlan = true; ///< whether it changes a plan, so that --what-if may ask for it
  /// What `--name` alone means; nothing where a value has to follow.
  std::optional<llvm::StringRef> alone = {};
  std::vector<OptionCondition> conditions = {};
  /// Each returns what was expected of the value, or an empty string.
  std::vector<std::function<std::string(const StepOptions &)>> checks = {};

  std::function<std::optional<std::string>(StepOptions &, llvm::StringRef)> read = {};
  std::function<std::vector<std::string>(const StepOptions &)> print = {};

  /// Returns the value as one text; elements of a list with a comma between.
  std::string printOne(const StepOptions &options) const;
  bool isReadBy(unsigned stages) const { return (readers & stages) != 0; }

  // How Options.def adds to a row.
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

/// Returns the row of this name, or null.
const OptionRow *findOption(llvm::StringRef name);

/// Sets the option `name` from text, as given by `origin`. Returns "--name=text: expected ...", or
/// nothing.
std::optional<std::string> setOption(StepOptions &options, llvm::StringRef name,
                                     llvm::StringRef text, OptionOrigin origin);

/// Returns what is wrong with values in themselves, of all options: "--name=value: expected ...".
std::optional<std::string> checkValues(const StepOptions &options);

/// Returns an option that is given and has no effect, "--name is of --other, ...". A file may say
/// more than is read.
std::optional<std::string> findUnread(const StepOptions &options);

/// Returns the name nearest to one that there is not, or nothing where none is near.
std::optional<std::string> findNearest(llvm::StringRef name);

/// Sets what follows from other options and is not given: units by file are made manually.
void inferOptions(StepOptions &options);

/// Prints the options of a level and those below it: their groups, one summary line each, or all of
/// their help.
void printOptionHelp(llvm::raw_ostream &os, bool all);

/// Prints docs/reference/options.md.
void printOptionsPage(llvm::raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_OPTIONS_OPTIONTABLE_H
