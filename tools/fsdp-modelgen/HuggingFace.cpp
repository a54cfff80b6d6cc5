//===- HuggingFace.cpp - Read a Hugging Face config.json --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Parse the file (at most 16 MiB, 64 levels). `model_type` selects the family and its defaults.
// 2. Read every key that affects the model. This includes keys of transformers 4 (rope_theta,
//    rope_scaling) and keys of transformers 5 (rope_parameters).
// 3. Report an error for every other key, except keys that are known not to affect the model.
//
//===----------------------------------------------------------------------===//

#include "HuggingFace.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;
using llvm::Twine;
using Kind = JsonValue::Kind;

/// Returns true if a key does not affect the model, for example a key for text generation.
static bool leavesMathsAlone(StringRef key) {
  static const llvm::StringSet<> names = {"architectures",
                                          "auto_map",
                                          "bad_words_ids",
                                          "begin_suppress_tokens",
                                          "chunk_size_feed_forward",
                                          "cross_attention_hidden_size",
                                          "diversity_penalty",
                                          "do_sample",
                                          "dtype",
                                          "early_stopping",
                                          "encoder_no_repeat_ngram_size",
                                          "exponential_decay_length_penalty",
                                          "finetuning_task",
                                          "gradient_checkpointing",
                                          "id2label",
                                          "is_decoder",
                                          "label2id",
                                          "length_penalty",
                                          "max_length",
                                          "max_window_layers",
                                          "min_length",
                                          "model_type",
                                          "n_ctx",
                                          "name_or_path",
                                          "no_repeat_ngram_size",
                                          "num_beam_groups",
                                          "num_beams",
                                          "num_labels",
                                          "num_return_sequences",
                                          "prefix",
                                          "pretraining_tp",
                                          "problem_type",
                                          "remove_invalid_values",
                                          "reorder_and_upcast_attn",
                                          "repetition_penalty",
                                          "return_dict",
                                          "return_dict_in_generate",
                                          "suppress_tokens",
                                          "task_specific_params",
                                          "temperature",
                                          "tf_legacy_loss",
                                          "tie_encoder_decoder",
                                          "tokenizer_class",
                                          "top_k",
                                          "top_p",
                                          "torch_dtype",
                                          "torchscript",
                                          "transformers_version",
                                          "typical_p",
                                          "use_bfloat16",
                                          "use_cache",
                                          "use_mrope"};
  return names.contains(key) || key.starts_with("_") || key.starts_with("summary_") ||
         key.starts_with("output_") || key.starts_with("forced_") || key.ends_with("_token_id");
}

/// Appends a value as JSON on one line, and stops after about 80 bytes.
static void print(const JsonValue &value, std::string &to) {
  constexpr size_t most = 80;
  if (to.size() > most)
    return;
  StringRef separator;
  if (value.is(Kind::array)) {
    to += "[";
    for (const JsonValue &element : value.elements) {
      to += separator;
      print(element, to);
      separator = ",";
    }
    to += "]";
  } else if (value.is(Kind::object)) {
    to += "{";
    for (const JsonMember &member : value.members) {
      to += (separator + "\"" + fsdpcommon::shortText(member.name) + "\":").str();
      print(member.value, to);
      separator = ",";
    }
    to += "}";
  } else if (value.is(Kind::null)) {
    to += "null";
  } else {
    std::string text = fsdpcommon::shortText(value.text);
    to += value.is(Kind::string) ? "\"" + text + "\"" : text;
  }
}

static std::string print(const JsonValue &value) {
  std::string text;
  print(value, text);
  return fsdpcommon::shortText(text);
}

namespace {
/// A JSON object. Each key of it must be read, unless the key is known not to affect the model.
class Section {
public:
  /// In messages, `name` is printed before a key, for example "'rope_scaling': ". For the object of
  /// the whole file, `name` is "".
  Section(const JsonValue &object, StringRef file, StringRef name, HuggingFaceResult &result)
      : object(object), file(file), name(name), result(result) {}

  void error(const JsonValue &at, const Twine &message) {
    result.errors.push_back(
        (file + ":" + Twine(at.line) + ":" + Twine(at.column) + ": " + name + message).str());
  }
  void error(const Twine &message) { error(object, message); }
  void note(const Twine &message) { result.notes.push_back((file + ": " + name + message).str()); }

  /// Returns the value of `key`. Returns null if the object does not contain `key`, or if the value
  /// is null.
  const JsonValue *take(StringRef key) {
    seen.insert(key);
    const JsonMember *member = object.find(key);
    return member && !member->value.is(Kind::null) ? &member->value : nullptr;
  }

  void read(StringRef key, int64_t &target) {
    readAs(key, target, "an integer of 64 bits",
           [](const JsonValue &value) { return value.asSigned(); });
  }
  void read(StringRef key, double &target) {
    readAs(key, target, "a number", [](const JsonValue &value) { return value.asDouble(); });
  }
  void read(StringRef key, bool &target) {
    readAs(key, target, "true or false", [](const JsonValue &value) {
      return value.is(Kind::boolean) ? std::optional<bool>(value.text == "true") : std::nullopt;
    });
  }
  void read(StringRef key, std::optional<int64_t> &target) {
    int64_t value = 0;
    if (take(key)) {
      read(key, value);
      target = value;
    }
  }
  std::string readText(StringRef key, StringRef otherwise) {
    const JsonValue *value = take(key);
    if (!value)
      return otherwise.str();
    if (value->is(Kind::string))
      return value->text;
    error(*value, "'" + key + "': expected a string, found " + print(*value));
    return otherwise.str();
  }

  /// Reports an error if the value of `key` is not `supported`, which is the only supported value.
  void expect(StringRef key, bool supported, StringRef why) {
    bool value = supported;
    read(key, value);
    if (value != supported)
      error(*take(key), "'" + key + "': " + why + "; expected " + (supported ? "true" : "false"));
  }

  /// Reports an error for each key that has not been read, is not in `ignored`, and may affect the
  /// model.
  void refuseOthers(ArrayRef<std::string> ignored) {
    for (const JsonMember &member : object.members)
      if (!seen.contains(member.name) && !leavesMathsAlone(member.name) &&
          !llvm::is_contained(ignored, member.name)) {
        std::string key = fsdpcommon::shortText(member.name);
        error(member.value, "unknown key '" + key + "' = " + print(member.value) +
                                " may change the maths; if it does not, give --ignore-key=" + key);
      }
  }

private:
  template <typename T, typename Get>
  void readAs(StringRef key, T &target, StringRef expected, Get get) {
    const JsonValue *value = take(key);
    if (!value)
      return;
    if (auto found = get(*value))
      target = *found;
    else
      error(*value, "'" + key + "': expected " + expected + ", found " + print(*value));
  }

  const JsonValue &object;
  std::string file, name;
  HuggingFaceResult &result;
  llvm::StringSet<> seen;
};
} // namespace

static void readActivation(Section &file, StringRef key, Activation &target) {
  const JsonValue *value = file.take(key);
  if (!value)
    return;
  std::string name = file.readText(key, "");
  auto kind = llvm::StringSwitch<std::optional<Activation>>(name)
                  .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, Activation::GeluTanh)
                  .Cases({"gelu", "gelu_python"}, Activation::GeluErf)
                  .Cases({"silu", "swish"}, Activation::Silu)
                  .Case("relu", Activation::Relu)
                  .Default(std::nullopt);
  if (kind)
    target = *kind;
  else
    file.error(*value, "'" + key + "': unknown function '" + fsdpcommon::shortText(name) +
                           "'; expected gelu_new, gelu, silu or relu");
}

/// Adds a note if the file requests dropout, because the generated model omits dropout.
static void noteDropout(Section &file, StringRef key) {
  double rate = 0;
  file.read(key, rate);
  if (rate != 0)
    file.note("'" + key + "' = " + llvm::formatv("{0:f2}", rate).str() +
              ": dropout is left out of the model; --dropout adds it");
}

static void readGPT2(Section &file, ModelConfig &config) {
  for (StringRef key : {"n_layer", "num_hidden_layers"})
    file.read(key, config.layers);
  for (StringRef key : {"n_embd", "hidden_size"})
    file.read(key, config.hidden);
  for (StringRef key : {"n_head", "num_attention_heads"})
    file.read(key, config.heads);
  for (StringRef key : {"n_positions", "max_position_embeddings"})
    file.read(key, config.positions);
  file.read("n_inner", config.intermediate);
  file.read("layer_norm_epsilon", config.epsilon);
  file.read("scale_attn_weights", config.scaleScores);
  file.read("scale_attn_by_inverse_layer_idx", config.scaleScoresByLayer);
  file.expect("add_cross_attention", false, "cross-attention is not supported");
  readActivation(file, "activation_function", config.activation);
  for (StringRef key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    noteDropout(file, key);
}

/// Reads rope_scaling of transformers 4, or rope_parameters of transformers 5. rope_parameters also
/// contains rope_theta.
static void readRope(Section &file, StringRef path, StringRef key, ModelConfig &config,
                     HuggingFaceResult &result) {
  const JsonValue *value = file.take(key);
  if (!value)
    return;
  if (!value->is(Kind::object)) {
    file.error(*value, "'" + key + "': expected an object, found " + print(*value));
    return;
  }
  Section rope(*value, path, ("'" + key + "': ").str(), result);
  std::string type = rope.readText("rope_type", rope.readText("type", "default"));
  RopeScaling &scaling = config.scaling;
  rope.read("rope_theta", config.ropeTheta);
  if (type == "linear" || type == "llama3") {
    scaling.kind = type == "linear" ? RopeScaling::Kind::Linear : RopeScaling::Kind::Llama3;
    rope.read("factor", scaling.factor);
    if (!value->find("factor"))
      rope.error("expected 'factor' beside type '" + type + "'");
  } else if (type != "default") {
    rope.error("unsupported type '" + fsdpcommon::shortText(type) +
               "'; expected default, linear or llama3");
    return;
  }
  if (type == "llama3") {
    rope.read("low_freq_factor", scaling.lowFreqFactor);
    rope.read("high_freq_factor", scaling.highFreqFactor);
    rope.read("original_max_position_embeddings", scaling.originalPositions);
  }
  rope.refuseOthers({});
}

static void readLlama(Section &file, StringRef path, StringRef type, ModelConfig &config,
                      HuggingFaceResult &result) {
  config.intermediate = 11008;
  if (type == "mistral") {
    config.kvHeads = 8;
    config.intermediate = 14336;
    config.positions = 131072;
  } else if (type == "qwen2") {
    config.vocab = 151936;
    config.intermediate = 22016;
    config.positions = 32768;
    config.qkvBias = true;
  }
  file.read("num_hidden_layers", config.layers);
  file.read("hidden_size", config.hidden);
  file.read("num_attention_heads", config.heads);
  file.read("num_key_value_heads", config.kvHeads);
  file.read("head_dim", config.headDim);
  file.read("intermediate_size", config.intermediate);
  file.read("max_position_embeddings", config.positions);
  file.read("rms_norm_eps", config.epsilon);
  readActivation(file, "hidden_act", config.activation);
  noteDropout(file, "attention_dropout");

  file.read("rope_theta", config.ropeTheta);
  readRope(file, path, "rope_scaling", config, result);
  readRope(file, path, "rope_parameters", config, result);
  if (type == "llama") {
    file.read("attention_bias", config.qkvBias);
    config.outBias = config.qkvBias;
    file.read("mlp_bias", config.mlpBias);
  }
  if (type == "qwen2")
    file.expect("use_sliding_window", false, "attention to a sliding window is not supported");
  const JsonValue *window = type == "llama" ? nullptr : file.take("sliding_window");
  if (window && type == "mistral")
    file.error(*window, "'sliding_window' = " + print(*window) +
                            ": attention to a sliding window is not supported; expected null");
}

HuggingFaceResult modelgen::readHuggingFaceConfig(StringRef path, ArrayRef<std::string> ignored) {
  HuggingFaceResult result;
  SmallString<256> name = path;
  if (llvm::sys::fs::is_directory(path))
    llvm::sys::path::append(name, "config.json");
  JsonProblem problem;
  std::optional<JsonValue> root = readJson(name.str().str(), problem);
  if (!root) {
    Twine line(problem.line), column(problem.column);
    result.errors.push_back(problem.line
                                ? (name + ":" + line + ":" + column + ": ").str() + problem.message
                                : (name + ": " + problem.message).str());
    return result;
  }
  if (!root->is(Kind::object)) {
    result.errors.push_back((name + ": expected an object, found " + root->describe()).str());
    return result;
  }

  Section file(*root, name, "", result);
  std::string type = file.readText("model_type", "");
  bool llama = type == "llama" || type == "mistral" || type == "qwen2";
  if (type != "gpt2" && !llama) {
    file.error("unsupported 'model_type' '" + fsdpcommon::shortText(type) +
               "'; expected gpt2, llama, mistral or qwen2");
    return result;
  }
  result.config = ModelConfig::defaults(llama ? Family::Llama : Family::GPT2);
  file.read("vocab_size", result.config.vocab);
  file.read("initializer_range", result.config.initRange);
  file.read("tie_word_embeddings", result.config.tied);
  file.expect("is_encoder_decoder", false, "only decoders are supported");
  if (const JsonValue *pruned = file.take("pruned_heads"))
    if (!pruned->is(Kind::object) || !pruned->members.empty())
      file.error(*pruned, "'pruned_heads': pruned heads are not supported");
  if (llama)
    readLlama(file, name, type, result.config, result);
  else
    readGPT2(file, result.config);
  file.refuseOthers(ignored);
  return result;
}
