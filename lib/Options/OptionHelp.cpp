//===- OptionHelp.cpp - The options in help and docs ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Options/OptionTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using llvm::StringRef;

static constexpr std::pair<OptionGroup, StringRef> groups[] = {
    {OptionGroup::Model, "MODEL"},         {OptionGroup::Sharding, "SHARDING"},
    {OptionGroup::Memory, "MEMORY"},       {OptionGroup::Overlap, "OVERLAP"},
    {OptionGroup::Precision, "PRECISION"}, {OptionGroup::Training, "TRAINING"},
    {OptionGroup::Target, "TARGET"},       {OptionGroup::Output, "OUTPUT"}};

/// Width of the lines of --help in columns, and the column at which the text of an option begins.
static constexpr size_t lineWidth = 100, textColumn = 32;

/// Returns the syntax of an option: "--name=VALUE".
static std::string spellUse(const OptionRow &row) {
  std::string use = (row.name.size() == 1 ? "-" : "--") + row.name.str();
  if (row.valueName.empty())
    return use;
  if (row.name.size() == 1)
    return use + " " + row.valueName.str();
  return use + (row.alone ? "[=" + row.valueName.str() + "]" : "=" + row.valueName.str());
}

/// Returns the first sentence of a help text.
static StringRef summarise(StringRef help) {
  size_t end = help.find(". ");
  return end == StringRef::npos ? help : help.take_front(end + 1);
}

/// Prints `text` in lines that begin at textColumn. The current line must already end at this
/// column.
static void printWrapped(llvm::raw_ostream &os, StringRef text) {
  size_t column = textColumn;
  llvm::SmallVector<StringRef> words;
  text.split(words, ' ');
  for (auto [index, word] : llvm::enumerate(words)) {
    if (index && column + 1 + word.size() > lineWidth) {
      os << "\n" << std::string(textColumn, ' ');
      column = textColumn;
    } else if (index) {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
  }
  os << "\n";
}

void mlir::fsdp::printOptionHelp(llvm::raw_ostream &os, bool all) {
  for (auto [group, title] : groups) {
    os << title << "\n";
    for (const OptionRow &row : getOptionRows()) {
      if (row.group != group || (!all && row.level != OptionLevel::Common))
        continue;
      std::string use = "  " + spellUse(row);
      os << use;
      if (use.size() + 1 > textColumn)
        os << "\n" << std::string(textColumn, ' ');
      else
        os << std::string(textColumn - use.size(), ' ');
      printWrapped(os, all ? row.help : summarise(row.help));
    }
  }
}

/// Returns the names of the stages that read an option.
static std::string listReaders(const OptionRow &row) {
  static constexpr std::pair<Stage, StringRef> names[] = {{Stage::import, "import"},
                                                          {Stage::shard, "shard"},
                                                          {Stage::differentiate, "differentiate"},
                                                          {Stage::update, "update"},
                                                          {Stage::fuse, "fuse"},
                                                          {Stage::plan, "plan"},
                                                          {Stage::codegen, "codegen"},
                                                          {Stage::package, "package"},
                                                          {Stage::driver, "driver"}};
  llvm::SmallVector<StringRef> readers;
  for (auto [stage, name] : names)
    if (row.isReadBy(unsigned(stage)))
      readers.push_back(name);
  return llvm::join(readers, ", ");
}

/// Returns `text` with the special characters of Markdown tables escaped.
static std::string escape(StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '|' ? "\\|" : c == '*' ? "\\*" : std::string(1, c);
  return escaped;
}

void mlir::fsdp::printOptionsPage(llvm::raw_ostream &os) {
  const StepOptions defaults;
  for (auto [group, title] : groups) {
    os << "\n## " << title.take_front(1) << title.drop_front(1).lower()
       << "\n\n| option | default | read by | meaning |\n|---|---|---|---|\n";
    for (const OptionRow &row : getOptionRows()) {
      if (row.group != group)
        continue;
      std::string value = row.printOne(defaults);
      os << "| `" << escape(spellUse(row)) << "` | " << (value.empty() ? "" : "`" + value + "`")
         << " | " << listReaders(row) << " | " << escape(row.help)
         << (row.level == OptionLevel::Expert ? " (`--help-hidden`)" : "") << " |\n";
    }
  }
}
