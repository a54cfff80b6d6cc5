//===- Config.cpp - Configuration files -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   {"fsdp": "full_shard auto_wrap",            --sharding-strategy=full_shard
//    "fsdp_config": {"min_num_params": 1000},   --auto-wrap-policy=size --min-num-params=1000
//    "gradient_clipping": 1.0}                  --clip-grad-norm=1.0
//
// 1. Walk the objects. Look up each key in the table (ConfigKeys.def). If the table does not
//    contain a key, compare the key with the names of the options of fsdp-compile. Underscores may
//    replace dashes.
// 2. Check the JSON type of the value, and map it to settings of options. The values "auto" and
//    null set nothing.
// 3. Report an error if two keys set the same option to different values.
//
// The time is O(keys · rows).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Config.h"
#include "ConfigTable.h"
#include "fsdp/Options/OptionTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir::fsdp;
using llvm::StringRef;
using llvm::Twine;
using Kind = JsonValue::Kind;

const ConfigSetting *Config::find(StringRef option) const {
  auto found = llvm::find_if(
      settings, [&](const ConfigSetting &setting) { return setting.option == option; });
  return found == settings.end() ? nullptr : &*found;
}

namespace {

class ConfigReader {
public:
  explicit ConfigReader(ConfigReport report) : report(report) {}
  std::optional<Config> read(const JsonValue &root);

private:
  void fail(const ConfigOrigin &place, const Twine &message) {
    ++numErrors;
    tell(/*isError=*/true, place, message);
  }
  void remark(const ConfigOrigin &place, const Twine &message) {
    tell(/*isError=*/false, place, message);
  }
  /// Reports a message. A key may be any text. The message therefore contains a shortened key, in
  /// which control characters are replaced.
  void tell(bool isError, const ConfigOrigin &place, const Twine &message) {
    report(isError, {place.line, place.column, shortText(place.key)},
           shortText(message.str(), 1000));
  }
  void failKind(const ConfigOrigin &place, const JsonValue &found, StringRef expected) {
    fail(place, "expected " + expected + ", found " + found.describe());
  }
  void walk(const JsonValue &object, const std::string &path);
  void visit(const JsonMember &member, const ConfigOrigin &place, bool atTop);
  void failUnknown(const ConfigOrigin &place);

  void applyOwn(const OptionRow &option, const JsonValue &value, const ConfigOrigin &place);
  void applyRow(const ConfigRow &row, const JsonValue &value, const ConfigOrigin &place);
  void applyWord(const ConfigRow &row, StringRef text, const ConfigOrigin &place);
  void applyPair(const ConfigRow &row, const JsonValue &value, const ConfigOrigin &place);
  void set(StringRef option, std::vector<std::string> values, const ConfigOrigin &place);
  void setFact(std::optional<ConfigFact> &fact, StringRef text, const ConfigOrigin &place);
  bool setSpecial(StringRef option, StringRef text, const ConfigOrigin &place);
  void dropUnused(const JsonValue &root);
  void reconcile();

  ConfigReport report;
  Config config;
  unsigned numErrors = 0;
  /// Values of those keys that together determine how units are formed (see reconcile()).
  std::optional<ConfigFact> minNumParams;
  std::optional<ConfigOrigin> layerClasses;
  bool foreignPolicy = false;
};

} // namespace

/// Returns the option whose name is `key`, where `key` may have underscores instead of dashes.
static const OptionRow *findOwn(StringRef key) {
  std::string name = key.str();
  std::replace(name.begin(), name.end(), '_', '-');
  return findOption(name);
}

void ConfigReader::failUnknown(const ConfigOrigin &place) {
  std::string nearest;
  unsigned least = std::max<unsigned>(2, place.key.size() / 3) + 1;
  // Limit the length of the key, because the time to compute an edit distance grows with it.
  constexpr size_t longest = 64;
  auto consider = [&](const std::string &name) {
    if (place.key.size() > longest)
      return;
    unsigned distance = StringRef(name).edit_distance(place.key, /*AllowReplacements=*/true, least);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  };
  for (const OptionRow &option : getOptionRows()) {
    std::string name = option.name.str();
    std::replace(name.begin(), name.end(), '-', '_');
    consider(name);
  }
  for (const std::string &name : spellConfigKeys())
    consider(name);
  fail(place, nearest.empty()
                  ? Twine("unknown key; docs/reference/config-files.md lists the known keys")
                  : "unknown key; did you mean \"" + nearest + "\"?");
}

void ConfigReader::walk(const JsonValue &object, const std::string &path) {
  constexpr unsigned mostErrors = 20;
  for (const JsonMember &member : object.members)
    if (numErrors < mostErrors)
      visit(member,
            {member.line, member.column, path.empty() ? member.name : path + "." + member.name},
            path.empty());
}

void ConfigReader::visit(const JsonMember &member, const ConfigOrigin &place, bool atTop) {
  const JsonValue &value = member.value;
  bool container = isConfigContainer(place.key);
  const ConfigRow *row = findConfigRow(place.key);
  const OptionRow *own = atTop ? findOwn(place.key) : nullptr;
  if (own && own->name == "config")
    return fail(place, "a file of options cannot name another one");
  if (!row && !own && !container)
    return failUnknown(place);
  if (value.is(Kind::null))
    return;
  if (value.is(Kind::string) && value.text == "auto" && (!own || own->name != "grad-sync"))
    return remark(place, "\"auto\" leaves this to the command line and the defaults");
  if (value.is(Kind::object) && container)
    return walk(value, place.key);
  if (row)
    return applyRow(*row, value, place);
  if (own)
    return applyOwn(*own, value, place);
  failKind(place, value, "an object");
}

/// Returns the value as an integer. Accepts forms such as 1e8 and 4.0.
static std::optional<int64_t> readInteger(const JsonValue &value) {
  int64_t integer = 0;
  if (value.is(Kind::integer) && !StringRef(value.text).getAsInteger(10, integer))
    return integer;
  double number = 0;
  if (!value.is(Kind::number) || StringRef(value.text).getAsDouble(number) ||
      std::floor(number) != number || std::abs(number) > 1e15)
    return std::nullopt;
  return static_cast<int64_t>(number);
}

static bool isNumber(const JsonValue &value) {
  return value.is(Kind::integer) || value.is(Kind::number);
}

/// Returns the value in the form in which the command line sets an option of kind `kind`. Returns
/// nothing if the value does not fit this kind.
static std::optional<std::vector<std::string>> spell(const JsonValue &value, OptionKind kind) {
  using Texts = std::vector<std::string>;
  switch (kind) {
  case OptionKind::flag:
    return value.is(Kind::boolean) ? std::optional(Texts{value.text}) : std::nullopt;
  case OptionKind::integer:
    if (std::optional<int64_t> integer = readInteger(value))
      return Texts{std::to_string(*integer)};
    return std::nullopt;
  case OptionKind::number:
    return isNumber(value) ? std::optional(Texts{value.text}) : std::nullopt;
  case OptionKind::word:
  case OptionKind::list:
    break;
  }
  if (value.isScalar())
    return Texts{value.text};
  Texts parts;
  for (const JsonValue &element : value.elements)
    parts.push_back(element.isScalar() && !element.is(Kind::null) ? element.text : "");
  for (const JsonMember &member : value.members)
    parts.push_back(member.value.isScalar() && !member.value.is(Kind::null)
                        ? member.name + "=" + member.value.text
                        : "");
  if (parts.empty() || llvm::is_contained(parts, ""))
    return std::nullopt;
  return kind == OptionKind::list ? parts : Texts{llvm::join(parts, ",")};
}

void ConfigReader::applyOwn(const OptionRow &option, const JsonValue &value,
                            const ConfigOrigin &place) {
  static constexpr StringRef expected[] = {"true or false", "an integer", "a number",
                                           "a string, or a list or an object of such",
                                           "a string, or a list or an object of such"};
  std::optional<std::vector<std::string>> values = spell(value, option.kind);
  if (!values)
    return failKind(place, value, expected[static_cast<unsigned>(option.kind)]);
  set(option.name, std::move(*values), place);
}

/// Returns the choices of a row as text: "FULL_SHARD, SHARD_GRAD_OP or NO_SHARD".
static std::string listChoices(const ConfigRow &row) {
  std::vector<std::string> choices;
  for (const ConfigMapping &mapping : row.mappings)
    choices.push_back(mapping.theirs.front().str());
  std::string last = choices.back();
  choices.pop_back();
  return choices.empty() ? last : llvm::join(choices, ", ") + " or " + last;
}

void ConfigReader::applyWord(const ConfigRow &row, StringRef text, const ConfigOrigin &place) {
  auto match = llvm::find_if(row.mappings, [&](const ConfigMapping &mapping) {
    return llvm::any_of(mapping.theirs, [&](StringRef theirs) {
      return theirs == "*" || theirs.equals_insensitive(text);
    });
  });
  if (match == row.mappings.end())
    return fail(place, "expected " + listChoices(row) + ", found " + text);
  if (match->ours == "-")
    return row.why.empty() ? void() : remark(place, "accepted, no effect: " + row.why);
  if (match->ours == "!")
    return fail(place, text + " is refused: " + row.why);
  StringRef option = row.options.empty() ? StringRef() : row.options.front(), value = match->ours;
  if (size_t colon = value.find(':'); colon != StringRef::npos) {
    option = value.take_front(colon);
    value = value.drop_front(colon + 1);
  }
  if (option == "auto-wrap-policy" && match->theirs.front() != "*")
    foreignPolicy = true;
  std::string spelled = value == "*" ? text.str() : value.str();
  if (unsigned power = 0; value == "2^*") {
    if (text.getAsInteger(10, power) || power > 62)
      return fail(place, "expected a power of two from 0 to 62, found " + text);
    spelled = std::to_string(int64_t(1) << power);
  }
  if (!setSpecial(option, spelled, place))
    set(option, {spelled}, place);
}

void ConfigReader::applyPair(const ConfigRow &row, const JsonValue &value,
                             const ConfigOrigin &place) {
  if (!value.is(Kind::array) || value.elements.size() != 2 ||
      !llvm::all_of(value.elements, isNumber))
    return failKind(place, value, "a list of two numbers");
  for (auto [option, element] : llvm::zip_equal(row.options, value.elements))
    set(option, {element.text}, place);
}

/// Returns the words of a string or of a list of strings.
static std::optional<std::vector<std::string>> splitWords(const JsonValue &value) {
  std::vector<std::string> words;
  auto add = [&](StringRef text) {
    llvm::SmallVector<StringRef> parts;
    llvm::SplitString(text, parts, " ,\t\n");
    words.insert(words.end(), parts.begin(), parts.end());
  };
  if (value.is(Kind::string) || value.is(Kind::boolean)) {
    add(value.text);
    return words;
  }
  if (!value.is(Kind::array))
    return std::nullopt;
  for (const JsonValue &element : value.elements) {
    if (!element.is(Kind::string))
      return std::nullopt;
    add(element.text);
  }
  return words;
}

void ConfigReader::applyRow(const ConfigRow &row, const JsonValue &value,
                            const ConfigOrigin &place) {
  if (row.kind == ConfigRowKind::any) {
    // An object with "enabled": false sets no option.
    const JsonMember *enabled = value.find("enabled");
    bool off =
        value.is(Kind::boolean) ? value.text == "false" : enabled && enabled->value.text == "false";
    if (off)
      return;
    return applyWord(row, value.isScalar() ? value.text : "this", place);
  }
  if (row.kind == ConfigRowKind::pair)
    return applyPair(row, value, place);
  if (row.kind == ConfigRowKind::words) {
    std::optional<std::vector<std::string>> words = splitWords(value);
    if (!words)
      return failKind(place, value, "a string or a list of strings");
    if (findConfigRow("transformer_layer_cls_to_wrap") == &row && !words->empty())
      layerClasses = place;
    if (row.mappings.front().theirs.front() == "*" && row.mappings.front().ours == "*")
      return words->empty() ? void() : set(row.options.front(), {llvm::join(*words, ",")}, place);
    for (const std::string &word : *words)
      applyWord(row, word, place);
    return;
  }
  bool isFlagWord = value.is(Kind::string) && (value.text == "true" || value.text == "false");
  if (row.kind == ConfigRowKind::flag && !value.is(Kind::boolean) && !isFlagWord)
    return failKind(place, value, "true or false");
  std::optional<int64_t> integer = readInteger(value);
  if (row.kind == ConfigRowKind::integer && !integer)
    return failKind(place, value, "an integer");
  if (row.kind == ConfigRowKind::number && !isNumber(value))
    return failKind(place, value, "a number");
  if (!value.isScalar())
    return failKind(place, value, "a word");
  applyWord(row, row.kind == ConfigRowKind::integer ? std::to_string(*integer) : value.text, place);
}

void ConfigReader::set(StringRef option, std::vector<std::string> values,
                       const ConfigOrigin &place) {
  if (const ConfigSetting *other = config.find(option)) {
    if (other->values != values) {
      fail(place, "contradicts \"" + other->origin.key + "\": --" + option + "=" +
                      llvm::join(values, ",") + " here, --" + option + "=" +
                      llvm::join(other->values, ",") + " there");
      remark(other->origin, "the other key is here");
    }
    return;
  }
  if (!findOwn(option))
    return fail(place, "needs --" + option + ", which this fsdp-compile does not have");
  config.settings.push_back({option.str(), std::move(values), place});
}

void ConfigReader::setFact(std::optional<ConfigFact> &fact, StringRef text,
                           const ConfigOrigin &place) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < 1)
    return fail(place, "expected at least 1, found " + text);
  if (fact && fact->value != value)
    return fail(place, "contradicts \"" + fact->origin.key + "\": " + Twine(value) + " here, " +
                           Twine(fact->value) + " there");
  fact = {value, place};
}

/// Handles settings that correspond to no option of fsdp-compile, or that depend on other keys.
/// Returns false if `option` names no such setting.
bool ConfigReader::setSpecial(StringRef option, StringRef text, const ConfigOrigin &place) {
  if (option == "batch")
    setFact(config.batch, text, place);
  else if (option == "ranks")
    setFact(config.ranks, text, place);
  else if (option == "total-batch")
    setFact(config.totalBatch, text, place);
  else if (option != "min-num-params")
    return false;
  else if (int64_t value = 0; text.getAsInteger(10, value) || value < 0)
    fail(place, "expected at least 0, found " + text);
  else
    minNumParams = {value, place};
  return true;
}

/// Drops the settings of `fp16` if it is disabled: {"fp16": {"enabled": false, "loss_scale": 0}}.
void ConfigReader::dropUnused(const JsonValue &root) {
  const JsonMember *half = root.find("fp16");
  const JsonMember *enabled =
      half && half->value.is(Kind::object) ? half->value.find("enabled") : nullptr;
  if (!enabled || enabled->value.text != "false")
    return;
  llvm::erase_if(config.settings, [&](const ConfigSetting &setting) {
    if (!StringRef(setting.origin.key).starts_with("fp16."))
      return false;
    remark(setting.origin, "accepted, no effect: fp16 is not enabled");
    return true;
  });
}

/// Decides how units are formed. If `min_num_params` is set without a policy, units are formed by
/// size. If another policy is set, `min_num_params` is ignored, because Accelerate writes its
/// default value with every policy.
void ConfigReader::reconcile() {
  if (config.ranks && !config.find("mesh"))
    set("mesh", {"shard=" + std::to_string(config.ranks->value)}, config.ranks->origin);
  if (!minNumParams || minNumParams->value == 0)
    return;
  const ConfigOrigin &place = minNumParams->origin;
  const ConfigSetting *policy = config.find("auto-wrap-policy");
  if (policy && policy->values.front() != "size" &&
      (foreignPolicy || policy->values.front() != "transformer"))
    return remark(place, "accepted, no effect: units are not made by size (\"" +
                             policy->origin.key + "\")");
  if (!policy && layerClasses)
    return fail(place, "contradicts \"" + layerClasses->key +
                           "\": units by size or by layer; say which in \"auto_wrap_policy\"");
  if (!policy)
    set("auto-wrap-policy", {"size"}, place);
  set("min-num-params", {std::to_string(minNumParams->value)}, place);
}

std::optional<Config> ConfigReader::read(const JsonValue &root) {
  if (!root.is(Kind::object)) {
    failKind({root.line, root.column, ""}, root, "an object of options");
    return std::nullopt;
  }
  walk(root, "");
  if (numErrors == 0)
    dropUnused(root);
  if (numErrors == 0)
    reconcile();
  return numErrors ? std::nullopt : std::optional(std::move(config));
}

std::optional<Config> mlir::fsdp::readConfig(StringRef path, ConfigReport report) {
  JsonProblem problem;
  std::optional<JsonValue> root = readJson(path.str(), problem);
  if (!root) {
    report(true, {problem.line, problem.column, ""}, problem.message);
    return std::nullopt;
  }
  return ConfigReader(report).read(*root);
}

bool mlir::fsdp::checkBatch(const Config &config, int64_t ranks, int64_t batch,
                            int64_t &accumulation, ConfigReport report) {
  if (config.ranks && config.ranks->value != ranks) {
    report(true, config.ranks->origin,
           Twine(config.ranks->value) + " ranks, but the mesh has " + Twine(ranks));
    return false;
  }
  if (config.batch && config.batch->value != batch) {
    report(true, config.batch->origin,
           Twine(config.batch->value) + " sequences, but the model was exported with " +
               Twine(batch) + " per rank and micro-batch");
    return false;
  }
  if (!config.totalBatch)
    return true;
  int64_t total = config.totalBatch->value, each = std::max<int64_t>(batch * ranks, 1);
  if (accumulation == 0 && total % each != 0) {
    report(true, config.totalBatch->origin,
           Twine(total) + " sequences in a step, but expected a multiple of " + Twine(batch) +
               " per rank and micro-batch x " + Twine(ranks) + " ranks");
    return false;
  }
  if (accumulation == 0)
    accumulation = total / each;
  int64_t turns = std::max<int64_t>(accumulation, 1);
  if (total == each * turns)
    return true;
  report(true, config.totalBatch->origin,
         Twine(total) + " sequences in a step, but " + Twine(batch) +
             " per rank and micro-batch x " + Twine(turns) + " micro-batches x " + Twine(ranks) +
             " ranks are " + Twine(each * turns));
  return false;
}
