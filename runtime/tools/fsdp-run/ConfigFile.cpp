//===- ConfigFile.cpp - Options in a JSON file ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A JSON reader for CLI11, which applies the values of options that the command line does not set.
// An unknown key is an error, whose message suggests the most similar known key.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "core/JsonText.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

using namespace fsdprt;
using nlohmann::json;

/// Names of options by the corresponding keys of Hugging Face's Trainer.
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

/// Returns the number of insertions, deletions and replacements between two words.
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

  std::vector<CLI::ConfigItem> from_config(std::istream &input) const override {
    std::map<std::string, std::string> origins;
    std::vector<CLI::ConfigItem> items;
    json root = parse(input);
    if (!root.is_object())
      refuse("expected an object of options");
    for (auto &[key, value] : root.items()) {
      if (value.is_null() || value == "auto")
        continue;
      auto alias = aliases.find(key);
      CLI::ConfigItem item;
      item.name = find(key, alias == aliases.end() ? spell(key) : alias->second);
      bool isList = value.is_array() && app.get_option("--" + item.name)->get_expected_max() > 1;
      item.inputs = isList ? writeAll(key, value) : std::vector<std::string>{write(key, value)};
      auto [other, isNew] = origins.emplace(item.name, key);
      if (!isNew)
        refuse("'" + printable(key) + "' and '" + printable(other->second) + "' both set --" +
               item.name);
      items.push_back(std::move(item));
    }
    return items;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw CLI::ConfigError("--config=" + app.get_config_ptr()->as<std::string>() + ": " + why,
                           CLI::ExitCodes::ConfigError);
  }

  json parse(std::istream &input) const {
    std::set<std::string> keys;
    auto check = [&](int depth, json::parse_event_t event, json &parsed) {
      if (event == json::parse_event_t::key && depth == 1 &&
          !keys.insert(parsed.get<std::string>()).second)
        refuse("'" + printable(parsed.get<std::string>()) + "' is given twice");
      return true;
    };
    std::string text(std::istreambuf_iterator<char>(input), {});
    try {
      checkJsonDepth("the file", text.data(), text.size());
    } catch (const Error &error) {
      refuse(error.what());
    }
    try {
      return json::parse(text, check);
    } catch (const json::exception &error) {
      refuse("not JSON: " + whyNotJson(text, error));
    }
  }

  std::string find(const std::string &key, const std::string &name) const {
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
                            : "; did you mean '" + nearest + "'?"));
  }

  /// Returns the elements of a list as words. A list denotes an option that is given several times.
  std::vector<std::string> writeAll(const std::string &key, const json &list) const {
    if (list.empty())
      refuse("'" + printable(key) + "': expected at least one value, found an empty list");
    std::vector<std::string> words;
    for (const json &element : list)
      words.push_back(write(key, element));
    return words;
  }

  std::string write(const std::string &key, const json &value) const {
    if (value.is_string())
      return value.get<std::string>();
    if (value.is_structured())
      refuse("'" + printable(key) + "': expected a word, a number, true or false");
    if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
        std::abs(value.get<double>()) < 1e15)
      // Whole numbers may be written as floats, such as 1e3 steps.
      return std::to_string(static_cast<long long>(value.get<double>()));
    return value.dump();
  }

  CLI::App &app;
};

} // namespace

void fsdprt::addConfigFile(CLI::App &app) {
  app.config_formatter(std::make_shared<JsonConfig>(app));
  app.set_config("--config", "",
                 "JSON file of these options, with dashes or underscores; the command line takes "
                 "precedence")
      ->type_name("FILE.json");
}
