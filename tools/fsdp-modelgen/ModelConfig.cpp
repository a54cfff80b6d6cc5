//===- ModelConfig.cpp - Defaults and checks of a model's sizes --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ModelConfig.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp::modelgen;
using llvm::Twine;

ModelConfig ModelConfig::defaults(Family family) {
  ModelConfig config;
  config.family = family;
  if (family == Family::GPT2) {
    config.layers = config.heads = 12;
    config.hidden = 768;
    config.vocab = 50257;
    config.positions = 1024;
    config.epsilon = 1e-5;
    config.tied = true;
    return config;
  }
  config.layers = config.heads = 32;
  config.hidden = 4096;
  config.vocab = 32000;
  config.positions = 2048;
  config.epsilon = 1e-6;
  config.activation = Activation::Silu;
  return config;
}

/// Returns the default width of the MLP. For GPT-2, the width is 4 · hidden. For Llama, it is 8/3 ·
/// hidden, rounded up to a multiple of 256.
static int64_t defaultIntermediate(Family family, int64_t hidden) {
  if (family == Family::GPT2)
    return 4 * hidden;
  return (8 * hidden / 3 + 255) / 256 * 256;
}

namespace {
class Faults {
public:
  std::vector<std::string> messages;

  void require(bool condition, const Twine &message) {
    if (!condition)
      messages.push_back(message.str());
  }
  void size(StringRef name, int64_t value, int64_t limit) {
    require(value >= 1 && value <= limit,
            "expected " + name + " in 1.." + Twine(limit) + ", found " + Twine(value));
  }
  void positive(StringRef name, double value) {
    require(std::isfinite(value) && value > 0,
            "expected a positive " + name + ", found " + std::to_string(value));
  }
};
} // namespace

/// Checks that an int64_t can contain the number of bytes of every tensor.
static void checkElements(const ModelConfig &config, Faults &faults) {
  constexpr double limit = double(int64_t(1) << 56);
  double tokens = double(config.batch) * *config.seq;
  int64_t widest = std::max({config.vocab, *config.intermediate, 3 * config.hidden,
                             config.heads * *config.headDim, config.heads * *config.seq});
  double weights =
      double(config.layers) * config.hidden * (4.0 * config.hidden + 3.0 * *config.intermediate);
  faults.require(tokens * widest <= limit, "the model is too large: " + Twine(config.batch) +
                                               " · " + Twine(*config.seq) + " · " + Twine(widest) +
                                               " elements in one tensor");
  faults.require(weights + double(config.vocab) * config.hidden <= limit,
                 "the model has too many parameters");
}

static void checkHeads(const ModelConfig &config, Faults &faults) {
  int64_t heads = config.heads, kvHeads = *config.kvHeads, headDim = *config.headDim;
  faults.require(heads % kvHeads == 0, "expected kv-heads to divide heads (" + Twine(heads) +
                                           "), found " + Twine(kvHeads) +
                                           "; every key/value head serves as many query heads");
  if (config.family == Family::GPT2) {
    faults.require(kvHeads == heads, "gpt2 has as many kv-heads as heads (" + Twine(heads) +
                                         "), found " + Twine(kvHeads));
    faults.require(headDim * heads == config.hidden, "gpt2 has head-dim · heads = hidden (" +
                                                         Twine(config.hidden) + "), found " +
                                                         Twine(headDim) + " · " + Twine(heads));
    faults.require(*config.seq <= config.positions,
                   "expected seq of at most the " + Twine(config.positions) +
                       " learned positions, found " + Twine(*config.seq) +
                       "; give more with --positions");
    return;
  }
  constexpr int64_t largestTable = int64_t(1) << 27;
  faults.require(*config.seq <= largestTable / headDim,
                 "expected seq · head-dim of at most " + Twine(largestTable) +
                     ", for the table of rotary embeddings, found " + Twine(*config.seq) + " · " +
                     Twine(headDim));
  faults.require(headDim % 2 == 0,
                 "rotary embedding pairs elements of a head: expected an even head-dim, found " +
                     Twine(headDim) + "; change hidden or heads, or give --head-dim");
}

std::vector<std::string> ModelConfig::resolve() {
  constexpr int64_t sizeLimit = int64_t(1) << 24;
  Faults faults;
  // The limit of layers is low, because a layer takes 1 ms and 12 kB of text to generate.
  faults.size("layers", layers, 4096);
  faults.size("hidden", hidden, sizeLimit);
  faults.size("heads", heads, 1 << 16);
  faults.size("vocab", vocab, sizeLimit);
  faults.size("positions", positions, sizeLimit);
  faults.size("batch", batch, sizeLimit);
  faults.positive("eps", epsilon);
  faults.positive("init-range", initRange);
  faults.positive("rope-theta", ropeTheta);
  for (double rate : {embeddingDropout, attentionDropout, residualDropout})
    if (!(rate >= 0 && rate < 1)) {
      faults.require(false,
                     "expected dropout to be a probability of at least 0 and below 1, found " +
                         llvm::formatv("{0:f3}", rate).str());
      break;
    }
  if (!faults.messages.empty())
    return faults.messages;

  faults.require(headDim || hidden % heads == 0,
                 "expected heads to divide hidden (" + Twine(hidden) + "), found " + Twine(heads) +
                     (family == Family::Llama ? "; or give --head-dim" : ""));
  kvHeads = kvHeads.value_or(heads);
  headDim = headDim.value_or(std::max<int64_t>(1, hidden / heads));
  intermediate = intermediate.value_or(defaultIntermediate(family, hidden));
  seq = seq.value_or(std::min<int64_t>(positions, 2048));
  faults.size("kv-heads", *kvHeads, 1 << 16);
  faults.size("head-dim", *headDim, 1 << 16);
  faults.size("intermediate", *intermediate, sizeLimit);
  faults.size("seq", *seq, 1 << 20);
  if (faults.messages.empty())
    checkHeads(*this, faults);
  if (faults.messages.empty())
    checkElements(*this, faults);
  if (scaling.kind != RopeScaling::Kind::None) {
    faults.positive("rope scaling factor", scaling.factor);
    faults.require(scaling.kind != RopeScaling::Kind::Llama3 ||
                       (scaling.lowFreqFactor > 0 &&
                        scaling.highFreqFactor > scaling.lowFreqFactor &&
                        scaling.originalPositions > 0),
                   "expected rope scaling with 0 < low_freq_factor < high_freq_factor and "
                   "original_max_position_embeddings of at least 1");
  }
  return faults.messages;
}
