//===- ConfigTable.cpp - The table of foreign keys --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses ConfigKeys.def, looks up keys, and prints the table for docs/reference/config-files.md.
//
//===----------------------------------------------------------------------===//

#include "ConfigTable.h"
#include "fsdp/Pipelines/Config.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using llvm::StringRef;

static llvm::SmallVector<StringRef> cutAt(StringRef text, char separator) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, separator, /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef &part : parts)
    part = part.trim();
  return parts;
}

static ConfigRow makeRow(ConfigFamily family, StringRef keys, ConfigRowKind kind, StringRef option,
                         StringRef values, StringRef why) {
  ConfigRow row{family, cutAt(keys, '|'), kind, cutAt(option, ','), {}, why.str()};
  if (values.empty())
    values = option.empty() ? "* = -" : "* = *";
  for (StringRef item : cutAt(values, ';')) {
    auto [theirs, ours] = item.split('=');
    row.mappings.push_back({cutAt(theirs, '|'), ours.trim()});
  }
  return row;
}

static const std::vector<ConfigRow> &getRows() {
  static const std::vector<ConfigRow> rows = {
#define FSDP_KEY(family, key, kind, option, values, why)                                           \
  makeRow(ConfigFamily::family, key, ConfigRowKind::kind, option, values, why),
#include "ConfigKeys.def"
  };
  return rows;
}

/// Returns KEY, the key in the table, if `key` is `fsdp_config.fsdp_KEY`, `fsdp_config.KEY`,
/// `fsdp_KEY` or KEY.
static StringRef stripFsdp(StringRef key) {
  key.consume_front("fsdp_config.");
  key.consume_front("fsdp_");
  return key;
}

static bool matches(StringRef key, StringRef written, bool exactly) {
  if (!key.consume_back(".*"))
    return key == written;
  return !exactly && written.consume_front(key) && (written.empty() || written.front() == '.');
}

const ConfigRow *mlir::fsdp::findConfigRow(StringRef key) {
  for (bool exactly : {true, false})
    for (const ConfigRow &row : getRows()) {
      bool bare = row.family != ConfigFamily::FSDP;
      if (llvm::any_of(row.keys, [&](StringRef k) {
            return matches(k, bare ? key : stripFsdp(key), exactly);
          }))
        return &row;
    }
  return nullptr;
}

bool mlir::fsdp::isConfigContainer(StringRef key) {
  if (key == "fsdp_config")
    return true;
  auto holds = [](StringRef container, StringRef k) {
    // An object whose key ends in `.*` is no container, because its members are not visited. An
    // object is a container if the table has keys for single members of the object.
    return !k.ends_with(".*") && k.consume_front(container) && k.starts_with(".");
  };
  return llvm::any_of(getRows(), [&](const ConfigRow &row) {
    bool bare = row.family != ConfigFamily::FSDP;
    return llvm::any_of(row.keys,
                        [&](StringRef k) { return holds(bare ? key : stripFsdp(key), k); });
  });
}

std::vector<std::string> mlir::fsdp::spellConfigKeys() {
  std::vector<std::string> names{"fsdp_config"};
  for (const ConfigRow &row : getRows())
    for (StringRef key : row.keys) {
      key.consume_back(".*");
      names.push_back(key.str());
      if (row.family != ConfigFamily::FSDP || key == "fsdp")
        continue;
      for (StringRef prefix : {"fsdp_", "fsdp_config.", "fsdp_config.fsdp_"})
        names.push_back((prefix + key).str());
    }
  return names;
}

std::vector<std::string> mlir::fsdp::getConfigTargets() {
  std::vector<std::string> targets;
  for (const ConfigRow &row : getRows()) {
    for (StringRef option : row.options)
      targets.push_back(option.str());
    for (const ConfigMapping &mapping : row.mappings)
      if (auto [option, value] = mapping.ours.split(':'); !value.empty())
        targets.push_back(option.str());
  }
  return targets;
}

/// Returns text that describes how a row maps a value.
static std::string describe(const ConfigRow &row, const ConfigMapping &mapping) {
  std::string theirs = "`" + llvm::join(mapping.theirs, "`, `") + "`: ";
  if (mapping.theirs.front() == "*")
    theirs = row.mappings.size() > 1 ? "else " : "";
  auto [option, value] = mapping.ours.split(':');
  if (mapping.ours == "-")
    return theirs + "accepted, no effect";
  if (mapping.ours == "!")
    return theirs + "refused";
  if (option == "batch" || option == "ranks" || option == "total-batch")
    return theirs + "compared";
  if (!value.empty())
    return theirs + "`--" + option.str() + "=" +
           (value == "*"     ? "…"
            : value == "2^*" ? "2^…"
                             : value.str()) +
           "`";
  if (mapping.ours == "*")
    return theirs + "the value";
  return theirs + "`" + mapping.ours.str() + "`";
}

static void printRow(const ConfigRow &row, llvm::raw_ostream &os) {
  static constexpr StringRef kinds[] = {"true, false", "integer",     "number", "word",
                                        "words",       "two numbers", "any"};
  os << "| `" << llvm::join(row.keys, "`, `") << "` | " << kinds[static_cast<unsigned>(row.kind)]
     << " | ";
  llvm::interleave(row.options, os, [&](StringRef option) { os << "`--" << option << "`"; }, ", ");
  os << " | ";
  llvm::interleave(
      row.mappings, os, [&](const ConfigMapping &mapping) { os << describe(row, mapping); }, "; ");
  os << " | " << row.why << " |\n";
}

void mlir::fsdp::printConfigKeys(llvm::raw_ostream &os) {
  static constexpr std::pair<ConfigFamily, StringRef> families[] = {
      {ConfigFamily::FSDP, "FSDP, as Hugging Face writes it (`fsdp`, `fsdp_config`)"},
      {ConfigFamily::Trainer, "Arguments of the Hugging Face Trainer and of Accelerate"},
      {ConfigFamily::DeepSpeed, "DeepSpeed"}};
  for (auto [family, title] : families) {
    os << "\n## " << title
       << "\n\n| key | value | option | what it becomes | remark |\n|---|---|---|---|---|\n";
    for (const ConfigRow &row : getRows())
      if (row.family == family)
        printRow(row, os);
  }
}
