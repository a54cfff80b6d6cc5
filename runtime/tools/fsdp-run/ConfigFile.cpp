//===- ConfigFile.cpp - Options in a JSON file ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements a reader of JSON files, which CLI11 uses to read the file of --config. A value in the
// file sets its option only if the command line does not set this option. If a key is unknown, the
// error message suggests the most similar known key.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "core/Error.h"
#include "fsdpcommon/InputStream.h"
#include "fsdpcommon/LocatedJson.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

using namespace fsdprt;
using fsdpcommon::JsonValue;
using Kind = JsonValue::Kind;

/// Maps keys of the Hugging Face Trainer to names of options with the same meaning.
static const std::map<std::string, std::string> aliases = {{"max_steps", "steps"},
                                                           {"learning_rate", "lr"},
                                                           {"warmup_steps", "warmup"},
                                                           {"eval_steps", "val-every"},
                                                           {"save_steps", "save-every"},
                                                           {"save_total_limit", "keep"},
                                                           {"resume_from_checkpoint", "resume"},
                                                           {"logging_dir", "tensorboard"}};

static std::string spell(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

/// Returns the least number of insertions, deletions and replacements that turn `a` into `b`.
static size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

namespace {

class JsonConfig : public CLI::Config {
public:
  explicit JsonConfig(CLI::App &app) : app(app) {}
  std::string to_config(const CLI::App *, bool, bool, std::string) const override { return ""; }

  /// Reads the content of the file `name` into `text`. If the file is a pipe, the wait for its data
  /// is limited. Returns the name of an empty file, which CLI11 then opens. CLI11 also calls
  /// from_config(), which parses `text`.
  std::string load(const std::string &name) {
    if (name == path)
      return emptyFile;
    std::string problem = fsdpcommon::readInput(name, mostBytes, text);
    if (!problem.empty())
      throw CLI::ConfigError("--config=" + name + ": " + problem, CLI::ExitCodes::ConfigError);
    path = name;
    return emptyFile;
  }

  std::vector<CLI::ConfigItem> from_config(std::istream &) const override {
    std::map<std::string, std::string> origins;
    std::vector<CLI::ConfigItem> items;
    fsdpcommon::JsonProblem problem;
    std::optional<JsonValue> root = fsdpcommon::parseJson(text, problem);
    if (!root)
      refuse(problem.message, problem.line, problem.column);
    if (!root->is(Kind::object))
      refuse("expected an object of options, found " + root->describe());
    for (const fsdpcommon::JsonMember &member : root->members) {
      const JsonValue &value = member.value;
      if (value.is(Kind::null) || (value.is(Kind::string) && value.text == "auto"))
        continue;
      auto alias = aliases.find(member.name);
      CLI::ConfigItem item;
      item.name = find(member, alias == aliases.end() ? spell(member.name) : alias->second);
      bool isList =
          value.is(Kind::array) && app.get_option("--" + item.name)->get_expected_max() > 1;
      item.inputs = isList ? writeAll(member) : std::vector<std::string>{write(member.name, value)};
      auto [other, isNew] = origins.emplace(item.name, member.name);
      if (!isNew)
        refuse("'" + printable(member.name) + "' and '" + printable(other->second) +
                   "' both set --" + item.name,
               member.line, member.column);
      items.push_back(std::move(item));
    }
    return items;
  }

private:
  [[noreturn]] void refuse(const std::string &why, unsigned line = 0, unsigned column = 0) const {
    std::string place =
        line ? ":" + std::to_string(line) + ":" + std::to_string(column) : std::string();
    throw CLI::ConfigError("--config=" + path + place + ": " + why, CLI::ExitCodes::ConfigError);
  }

  std::string find(const fsdpcommon::JsonMember &member, const std::string &name) const {
    const std::string &key = member.name;
    std::string nearest;
    size_t least = std::max<size_t>(2, key.size() / 3) + 1;
    for (const CLI::Option *option : app.get_options())
      for (const std::string &known : option->get_lnames()) {
        if (known == "config" || known == "help" || known == "version")
          continue;
        if (known == name)
          return name;
        if (size_t apart = key.size() < 100 ? distance(known, name) : least; apart < least) {
          least = apart;
          nearest = known;
        }
      }
    refuse("unknown key '" + printable(key) + "'" +
               (nearest.empty() ? "; fsdp-run --help lists the options"
                                : "; did you mean '" + nearest + "'?"),
           member.line, member.column);
  }

  /// Returns the elements of a list as texts, which become the values of an option that may be
  /// given several times.
  std::vector<std::string> writeAll(const fsdpcommon::JsonMember &list) const {
    if (list.value.elements.empty())
      refuse("'" + printable(list.name) + "': expected at least one value, found an empty list",
             list.line, list.column);
    std::vector<std::string> words;
    for (const JsonValue &element : list.value.elements)
      words.push_back(write(list.name, element));
    return words;
  }

  std::string write(const std::string &key, const JsonValue &value) const {
    if (!value.isScalar())
      refuse("'" + printable(key) + "': expected a word, a number, true or false, found " +
                 value.describe(),
             value.line, value.column);
    std::optional<double> number = value.is(Kind::number) ? value.asDouble() : std::nullopt;
    if (number && std::floor(*number) == *number && std::abs(*number) < 1e15)
      // JSON may write a whole number as a float, such as 1e3.
      return std::to_string(static_cast<long long>(*number));
    return value.text;
  }

  static constexpr char emptyFile[] = "/dev/null";
  static constexpr uint64_t mostBytes = 16 << 20;
  CLI::App &app;
  std::string path, text;
};

} // namespace

void fsdprt::addConfigFile(CLI::App &app) {
  auto config = std::make_shared<JsonConfig>(app);
  app.config_formatter(config);
  app.set_config("--config", "",
                 "JSON file of these options, with dashes or underscores; the command line takes "
                 "precedence")
      ->transform([config](const std::string &name) { return config->load(name); })
      ->type_name("FILE.json");
}
