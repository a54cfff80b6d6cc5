//===- SaveIndex.cpp - The index of a save ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// readIndex() checks first the format and the version, then the hash, and last the content. A save
// that was written by a later version is therefore not reported as damaged.
//
//===----------------------------------------------------------------------===//

#include "train/SaveIndex.h"
#include "core/Error.h"
#include "fsdpcommon/LocatedJson.h"
#include "fsdprt/sha256.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

using namespace fsdprt;
using json = nlohmann::ordered_json;
using ull = unsigned long long;

static constexpr const char *const formatName = "fsdp-save";
static constexpr size_t digits = 64;
static constexpr const char hashKey[] = "  \"sha256\": \"";
static constexpr const char behindHash[] = "\"\n}\n";

std::string fsdprt::rankFileName(uint64_t rank) {
  return format("rank-%05llu.safetensors", (ull)rank);
}

std::string SaveIndex::meshText() const {
  std::string text;
  for (const Axis &axis : mesh)
    text += (text.empty() ? "" : ",") + printable(axis.name) + "=" + std::to_string(axis.size);
  return text.empty() ? "one rank" : text;
}

static constexpr const char *dtypeNames[] = {"F64", "F32", "F16", "BF16", "I64",
                                             "I32", "I16", "I8",  "BOOL"};

static std::string dtypeName(fsdprt_dtype dtype) { return dtypeNames[dtype]; }

std::optional<DType> fsdprt::dtypeNamed(const std::string &name) {
  for (size_t i = 0; i < std::size(dtypeNames); ++i)
    if (name == dtypeNames[i])
      return static_cast<DType>(i);
  return std::nullopt;
}

static const char *roleName(fsdprt_state_role role) {
  static const char *const names[] = {"parameter", "first_moment", "second_moment", "momentum",
                                      "master"};
  return names[role];
}

/// Calls each(info, i) for i = 0, 1, ... until get(artifact, i, &info) fails. The function get()
/// writes a description of the object with index i to `info`.
template <typename Info, typename Get, typename Each>
static void forEach(const fsdprt_artifact *artifact, Get get, Each each) {
  Info info = {};
  for (uint64_t i = 0; info.struct_size = sizeof info, get(artifact, i, &info) == FSDPRT_OK; ++i)
    each(info, i);
}

SaveIndex fsdprt::describeLayout(const fsdprt_artifact *artifact) {
  SaveIndex index;
  fsdprt_artifact_info about = {};
  about.struct_size = sizeof about;
  fsdprt_artifact_get_info(artifact, &about);
  index.artifactHash = hexText(about.sha256);
  index.modelSource = about.source;
  index.compiler = about.compiler;
  index.hasDynamicScale = about.loss_scale != 1;
  for (uint64_t i = 0; const char *option = fsdprt_artifact_get_option(artifact, i); ++i)
    index.options.push_back(option);
  forEach<fsdprt_axis_info>(artifact, fsdprt_artifact_get_axis, [&](const auto &axis, uint64_t) {
    index.mesh.push_back({axis.name, axis.size});
  });
  forEach<fsdprt_unit_info>(artifact, fsdprt_artifact_get_unit, [&](const auto &unit, uint64_t) {
    index.units.push_back(
        {unit.name, dtypeName(unit.dtype), unit.shards, unit.shard_size, {}, unit.slices});
  });
  forEach<fsdprt_param_info>(artifact, fsdprt_artifact_get_param, [&](const auto &param, uint64_t) {
    index.units[param.unit_index].params.push_back(
        {param.name,
         dtypeName(param.dtype),
         param.unit_offset,
         {param.shape, param.shape + param.rank},
         param.split_dim,
         {param.split_blocks, param.split_blocks + param.num_split_blocks}});
  });
  std::set<std::string> names;
  forEach<fsdprt_state_info>(
      artifact, fsdprt_artifact_get_state, [&](const auto &state, uint64_t i) {
        std::string name = index.units[state.unit].name + "/" + roleName(state.role);
        // Several units may have the same name, so the index of the state distinguishes them.
        if (!names.insert(name).second)
          name += "#" + std::to_string(i);
        index.states.push_back(
            {name, roleName(state.role), dtypeName(state.dtype), state.unit, state.elements, {}});
        std::vector<uint64_t> &files = index.states.back().files;
        files.resize(state.pieces);
        // If several ranks have the same piece, files[piece] must be the lowest of these ranks. The
        // loop visits the ranks in descending order, so that it stores the lowest rank last.
        for (uint64_t rank = about.ranks, piece = 0; rank-- > 0;)
          if (fsdprt_artifact_get_piece(artifact, i, rank, &piece) == FSDPRT_OK)
            files[piece] = rank;
      });
  for (uint64_t rank = 0; rank < about.ranks; ++rank)
    index.files.push_back({rankFileName(rank), "", 0});
  return index;
}

static json meshJson(const SaveIndex &index) {
  json axes = json::array();
  for (const SaveIndex::Axis &axis : index.mesh)
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  return axes;
}

static json unitsJson(const SaveIndex &index) {
  json units = json::array();
  for (const SaveIndex::Unit &unit : index.units) {
    json params = json::array();
    for (const SaveIndex::Param &param : unit.params) {
      params.push_back({{"name", param.name},
                        {"offset", param.offset},
                        {"shape", param.shape},
                        {"dtype", param.dtype}});
      if (!param.blocks.empty())
        params.back()["split"] = {{"dim", param.splitDim}, {"blocks", param.blocks}};
    }
    units.push_back({{"name", unit.name},
                     {"dtype", unit.dtype},
                     {"shards", unit.shards},
                     {"shard_size", unit.shardSize},
                     {"params", params}});
    if (unit.slices != 1)
      units.back()["slices"] = unit.slices;
  }
  return units;
}

static json statesJson(const SaveIndex &index) {
  json states = json::array();
  for (const SaveIndex::State &state : index.states)
    states.push_back({{"tensor", state.tensor},
                      {"unit", state.unit},
                      {"role", state.role},
                      {"dtype", state.dtype},
                      {"elements", state.elements},
                      {"files", state.files}});
  return states;
}

static json runJson(const RunState &run) {
  json data = {{"source", run.source},
               {"overfit", run.overfit},
               {"extra_ids", run.extraIds},
               {"val_fraction", run.validationFraction}};
  if (!run.dataHash.empty()) {
    data["type"] = run.dataType;
    data["tokens"] = run.tokens;
    data["train_tokens"] = run.trainTokens;
    data["sha256"] = run.dataHash;
  }
  for (const RunState::Input &input : run.inputs)
    data["inputs"].push_back({{"name", input.name},
                              {"samples", input.rows},
                              {"train_samples", input.trainRows},
                              {"sha256", input.hash}});
  if (!run.synthetic.empty())
    data["synthetic"] = run.synthetic;
  for (const RunState::StepInput &input : run.stepInputs)
    data["step"].push_back(
        {{"name", input.name}, {"samples", input.samples}, {"elements", input.elements}});
  json rate = {{"lr", run.rate.lr},
               {"minimum", run.rate.minimum},
               {"warmup_steps", run.rate.warmupSteps},
               {"decay_steps", run.rate.decaySteps}};
  return {
      {"seed", run.seed}, {"data", data}, {"rate", rate}, {"nonfinite_steps", run.nonfiniteSteps}};
}

/// JSON has no numbers for values that are not finite.
static json stepBlockJson(const SaveIndex &index) {
  json block = json::array();
  for (float value : index.block)
    block.push_back(std::isfinite(value) ? json(value)
                    : std::isnan(value)  ? json("nan")
                                         : json(value > 0 ? "inf" : "-inf"));
  return block;
}

std::string fsdprt::writeIndex(SaveIndex &index) {
  json files = json::array();
  for (const SaveIndex::File &file : index.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  json root = {{"format", formatName},
               {"version", index.versionOf()},
               {"step", index.run.step},
               {"artifact",
                {{"sha256", index.artifactHash},
                 {"source", index.modelSource},
                 {"compiler", index.compiler},
                 {"options", index.options}}},
               {"mesh", meshJson(index)},
               {"run", runJson(index.run)},
               {"step_block", stepBlockJson(index)},
               {"units", unitsJson(index)},
               {"states", statesJson(index)},
               {"files", files}};
  // Each member is on its own line, so that people can read the file and tools can compare it line
  // by line.
  std::string text = "{\n";
  for (const auto &[key, value] : root.items())
    text += "  " + json(key).dump() + ": " +
            value.dump(-1, ' ', false, json::error_handler_t::replace) + ",\n";
  text += hashKey;
  size_t at = text.size();
  text += std::string(digits, '0') + behindHash;
  index.sha256 = sha256Text(text.data(), text.size());
  text.replace(at, digits, index.sha256);
  return text;
}

uint64_t SaveIndex::versionOf() const {
  for (const Unit &unit : units)
    if (unit.slices != 1 || std::any_of(unit.params.begin(), unit.params.end(),
                                        [](const Param &param) { return !param.blocks.empty(); }))
      return version;
  return 1;
}

bool SaveIndex::hasLayoutOf(const SaveIndex &other) const {
  return meshJson(*this) == meshJson(other) && unitsJson(*this) == unitsJson(other) &&
         statesJson(*this) == statesJson(other) && files.size() == other.files.size();
}

namespace {
using fsdpcommon::JsonValue;
using Kind = JsonValue::Kind;

/// Throws an Error whose message contains the line and the column of `value`.
[[noreturn]] void refuse(const JsonValue &value, const std::string &why) {
  badInput("line %u, column %u: %s", value.line, value.column, why.c_str());
}

/// Returns the member `key` of the object `from`. Throws Error if `from` has no such member.
const JsonValue &member(const JsonValue &from, const char *key) {
  if (!from.is(Kind::object))
    refuse(from, std::string("expected an object with '") + key + "', found " + from.describe());
  const fsdpcommon::JsonMember *found = from.find(key);
  if (!found)
    refuse(from, std::string("expected '") + key + "' in this object, found none");
  return found->value;
}

const JsonValue &ofKind(const JsonValue &value, Kind kind, const char *expected) {
  if (!value.is(kind))
    refuse(value, std::string("expected ") + expected + ", found " + value.describe());
  return value;
}

const std::vector<JsonValue> &elements(const JsonValue &from, const char *key) {
  return ofKind(member(from, key), Kind::array, "a list").elements;
}

std::string text(const JsonValue &from, const char *key) {
  return ofKind(member(from, key), Kind::string, "a string").text;
}

uint64_t unsignedOf(const JsonValue &value) {
  std::optional<uint64_t> number = value.asUnsigned();
  if (!number)
    refuse(value, "expected a whole number that fits 64 bits, found " + value.describe());
  return *number;
}

uint64_t number(const JsonValue &from, const char *key) { return unsignedOf(member(from, key)); }

double real(const JsonValue &from, const char *key) {
  const JsonValue &value = member(from, key);
  std::optional<double> number = value.asDouble();
  if (!number)
    refuse(value, "expected a number, found " + value.describe());
  return *number;
}

std::vector<uint64_t> numbers(const JsonValue &from, const char *key) {
  std::vector<uint64_t> result;
  for (const JsonValue &value : elements(from, key))
    result.push_back(unsignedOf(value));
  return result;
}
} // namespace

/// Returns an element of a step block.
static float readElement(const JsonValue &value) {
  if (std::optional<double> number = value.asDouble())
    return static_cast<float>(*number);
  if (value.is(Kind::string) && (value.text == "inf" || value.text == "-inf"))
    return value.text == "inf" ? INFINITY : -INFINITY;
  // Older saves have null for each value that is not finite.
  if (!value.is(Kind::null) && !(value.is(Kind::string) && value.text == "nan"))
    refuse(value, "expected a number, 'inf', '-inf' or 'nan', found " + value.describe());
  return NAN;
}

static RunState readRun(const JsonValue &root) {
  const JsonValue &from = member(root, "run"), &data = member(from, "data"),
                  &rate = member(from, "rate");
  RunState run;
  run.step = number(root, "step");
  run.seed = number(from, "seed");
  run.nonfiniteSteps = number(from, "nonfinite_steps");
  run.rate.lr = real(rate, "lr");
  run.rate.minimum = real(rate, "minimum");
  run.rate.warmupSteps = number(rate, "warmup_steps");
  run.rate.decaySteps = number(rate, "decay_steps");
  run.source = text(data, "source");
  run.overfit = ofKind(member(data, "overfit"), Kind::boolean, "true or false").text == "true";
  run.extraIds = real(data, "extra_ids");
  run.validationFraction = real(data, "val_fraction");
  if (data.find("inputs"))
    for (const JsonValue &input : elements(data, "inputs"))
      run.inputs.push_back({text(input, "name"), text(input, "sha256"), number(input, "samples"),
                            number(input, "train_samples")});
  if (data.find("synthetic"))
    for (const JsonValue &name : elements(data, "synthetic"))
      run.synthetic.push_back(ofKind(name, Kind::string, "a string").text);
  if (data.find("step"))
    for (const JsonValue &input : elements(data, "step"))
      run.stepInputs.push_back(
          {text(input, "name"), number(input, "samples"), number(input, "elements")});
  if (!data.find("sha256"))
    return run;
  run.dataType = text(data, "type");
  run.tokens = number(data, "tokens");
  run.trainTokens = number(data, "train_tokens");
  run.dataHash = text(data, "sha256");
  return run;
}

/// Reads mesh, units, states and files. If `hasSlices` is false, as in version 1, units have one
/// slice.
static void readLayout(const JsonValue &root, bool hasSlices, SaveIndex &index) {
  for (const JsonValue &axis : elements(root, "mesh"))
    index.mesh.push_back({text(axis, "name"), number(axis, "size")});
  for (const JsonValue &unit : elements(root, "units")) {
    index.units.push_back({text(unit, "name"),
                           text(unit, "dtype"),
                           number(unit, "shards"),
                           number(unit, "shard_size"),
                           {},
                           hasSlices && unit.find("slices") ? number(unit, "slices") : 1});
    for (const JsonValue &param : elements(unit, "params")) {
      index.units.back().params.push_back({text(param, "name"), text(param, "dtype"),
                                           number(param, "offset"), numbers(param, "shape")});
      if (hasSlices && param.find("split")) {
        const JsonValue &split = member(param, "split");
        index.units.back().params.back().splitDim = number(split, "dim");
        index.units.back().params.back().blocks = numbers(split, "blocks");
      }
    }
  }
  for (const JsonValue &state : elements(root, "states"))
    index.states.push_back({text(state, "tensor"), text(state, "role"), text(state, "dtype"),
                            number(state, "unit"), number(state, "elements"),
                            numbers(state, "files")});
  for (const JsonValue &file : elements(root, "files"))
    index.files.push_back({text(file, "name"), text(file, "sha256"), number(file, "bytes")});
}

/// Returns the hash that is stored at the end of `text`. Throws Error if this hash is not correct.
/// The hash must be the SHA-256 of `text` with zeros in place of the digits of the stored hash.
static std::string checkHash(const std::string &text) {
  std::string behind = behindHash;
  size_t least = sizeof hashKey - 1 + digits + behind.size();
  size_t at = text.size() < least ? 0 : text.size() - behind.size() - digits;
  if (!at || text.compare(at + digits, behind.size(), behind) != 0 ||
      text.compare(at - (sizeof hashKey - 1), sizeof hashKey - 1, hashKey) != 0)
    badInput("expected its SHA-256 at its end; it is cut short or damaged");
  std::string found = text.substr(at, digits), zeroed = text;
  zeroed.replace(at, digits, digits, '0');
  if (sha256Text(zeroed.data(), zeroed.size()) != found)
    badInput("its content does not match the SHA-256 at its end; it is damaged");
  return found;
}

static SaveIndex parseIndex(const std::string &text) {
  fsdpcommon::JsonProblem problem;
  std::optional<JsonValue> parsed = fsdpcommon::parseJson(text, problem);
  if (!parsed)
    badInput("expected the JSON object of a save; it is cut short or damaged (line %u, column %u: "
             "%s)",
             problem.line, problem.column, problem.message.c_str());
  const JsonValue &root = *parsed;
  if (!root.is(Kind::object))
    badInput("expected the JSON object of a save, found %s", root.describe().c_str());
  const fsdpcommon::JsonMember *format = root.find("format"), *version = root.find("version");
  if (!format || !format->value.is(Kind::string) || format->value.text != formatName)
    badInput("expected the index of a save, with format '%s'", formatName);
  std::optional<uint64_t> number = version ? version->value.asUnsigned() : std::nullopt;
  if (!number || *number < 1 || *number > SaveIndex::version)
    badInput("expected version 1 or %llu of the format, found %s", (ull)SaveIndex::version,
             version ? version->value.describe().c_str() : "none");
  SaveIndex index;
  index.sha256 = checkHash(text);
  const JsonValue &artifact = member(root, "artifact");
  index.artifactHash = ::text(artifact, "sha256");
  index.modelSource = ::text(artifact, "source");
  index.compiler = ::text(artifact, "compiler");
  if (artifact.find("options"))
    for (const JsonValue &option : elements(artifact, "options"))
      index.options.push_back(ofKind(option, Kind::string, "a string").text);
  index.run = readRun(root);
  const std::vector<JsonValue> &block = elements(root, "step_block");
  if (block.size() != index.block.size())
    badInput("expected %zu numbers in 'step_block', found %zu", index.block.size(), block.size());
  for (size_t i = 0; i < block.size(); ++i)
    index.block[i] = readElement(block[i]);
  readLayout(root, *number > 1, index);
  return index;
}

SaveIndex fsdprt::readIndex(const std::string &path, const std::string &text) {
  try {
    return parseIndex(text);
  } catch (const Error &error) {
    badInput("%s: %s", path.c_str(), error.what());
  }
}
