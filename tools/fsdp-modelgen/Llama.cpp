//===- Llama.cpp - The Llama family -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   x = embed_tokens[tokens]
//   per layer:  x += o_proj(attention(rope(q_proj(y)), rope(k_proj(y)), v_proj(y))),
//                      y = input_layernorm(x)
//               x += down_proj(silu(gate_proj(z)) · up_proj(z)), z = post_attention_layernorm(x)
//   loss = cross_entropy(norm(x) · lm_headᵀ, targets)
//
// The names, shapes, order and initial values of the parameters are those of Hugging Face's
// LlamaForCausalLM. Weights have the shape [out, in]. Rotary embedding rotates the pairs (i, i +
// d/2) of a head's d channels, as the checkpoints of Hugging Face require.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;

using Init = Parameter::Init;

std::vector<Parameter> modelgen::llamaParameters(const ModelConfig &config) {
  int64_t c = config.hidden, inner = *config.intermediate;
  int64_t queries = config.heads * *config.headDim, keys = *config.kvHeads * *config.headDim;
  std::vector<Parameter> list;
  auto linear = [&](const std::string &name, int64_t out, int64_t in, bool bias) {
    list.push_back({name + ".weight", {out, in}, Init::Normal, config.initRange});
    if (bias)
      list.push_back({name + ".bias", {out}, Init::Zeros});
  };
  list.push_back({"model.embed_tokens.weight", {config.vocab, c}, Init::Normal, config.initRange});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "model.layers." + std::to_string(layer);
    linear(name + ".self_attn.q_proj", queries, c, config.qkvBias);
    linear(name + ".self_attn.k_proj", keys, c, config.qkvBias);
    linear(name + ".self_attn.v_proj", keys, c, config.qkvBias);
    linear(name + ".self_attn.o_proj", c, queries, config.outBias);
    linear(name + ".mlp.gate_proj", inner, c, config.mlpBias);
    linear(name + ".mlp.up_proj", inner, c, config.mlpBias);
    linear(name + ".mlp.down_proj", c, inner, config.mlpBias);
    list.push_back({name + ".input_layernorm.weight", {c}, Init::Ones});
    list.push_back({name + ".post_attention_layernorm.weight", {c}, Init::Ones});
  }
  list.push_back({"model.norm.weight", {c}, Init::Ones});
  if (!config.tied)
    list.push_back({"lm_head.weight", {config.vocab, c}, Init::Normal, config.initRange});
  return list;
}

/// Scales a frequency. The method of Llama 3.1 divides low frequencies by `factor`, does not change
/// high frequencies, and interpolates between these two results for the frequencies in between.
static double stretch(double frequency, const RopeScaling &scaling) {
  if (scaling.kind == RopeScaling::Kind::None)
    return frequency;
  if (scaling.kind == RopeScaling::Kind::Linear)
    return frequency / scaling.factor;
  double turns = scaling.originalPositions * frequency / (2 * M_PI);
  if (turns < scaling.lowFreqFactor)
    return frequency / scaling.factor;
  if (turns > scaling.highFreqFactor)
    return frequency;
  double blend = (turns - scaling.lowFreqFactor) / (scaling.highFreqFactor - scaling.lowFreqFactor);
  return (1 - blend) * frequency / scaling.factor + blend * frequency;
}

namespace {
/// Two constant tables, which contain the cosine and the sine for each position and each frequency.
/// The shape of each table is [seq, head-dim / 2].
struct Rotation {
  Value cos, sin;

  explicit Rotation(Emitter &emit) {
    const ModelConfig &config = emit.config;
    int64_t half = *config.headDim / 2;
    std::vector<double> cosines, sines;
    for (int64_t position = 0; position < *config.seq; ++position) {
      for (int64_t i = 0; i < half; ++i) {
        double frequency = stretch(std::pow(config.ropeTheta, -double(i) / half), config.scaling);
        cosines.push_back(std::cos(position * frequency));
        sines.push_back(std::sin(position * frequency));
      }
    }
    cos = emit.table({*config.seq, half}, cosines, "rope.cos");
    sin = emit.table({*config.seq, half}, sines, "rope.sin");
  }
};
} // namespace

/// Applies the rotary embedding to x, whose shape is [b, t, heads, d]. If low and high are the two
/// halves of d, the result is (low·cos - high·sin, high·cos + low·sin).
static Value rotate(Emitter &emit, Value x, const Rotation &rotation, const std::string &what) {
  int64_t half = *emit.config.headDim / 2;
  Value low = emit.slice(x, 3, 0, half, what + ".low"),
        high = emit.slice(x, 3, half, half, what + ".high");
  StringRef spec = "bthd,bthd,td,td->bthd";
  Value newLow = emit.map(spec, {low, high, rotation.cos, rotation.sin}, emit.narrow, what + ".low",
                          [](ArrayRef<Scalar> in) { return in[0] * in[2] - in[1] * in[3]; });
  Value newHigh =
      emit.map(spec, {low, high, rotation.cos, rotation.sin}, emit.narrow, what + ".high",
               [](ArrayRef<Scalar> in) { return in[1] * in[2] + in[0] * in[3]; });
  return emit.concat(newLow, newHigh, 3, what + ".rope");
}

static Value linear(Emitter &emit, Value x, const std::string &name, bool bias) {
  emit.setScope(name);
  return emit.linear("nk,ok->no", x, emit.param(name + ".weight"),
                     bias ? emit.param(name + ".bias") : Value());
}

static Value norm(Emitter &emit, Value x, const std::string &name) {
  emit.setScope(name);
  return emit.rmsNorm(x, emit.param(name + ".weight"));
}

static Value attention(Emitter &emit, Value x, const std::string &name, const Rotation &rotation) {
  const ModelConfig &config = emit.config;
  int64_t batch = config.batch, seq = *config.seq, keys = *config.kvHeads, dim = *config.headDim;
  Value q = linear(emit, x, name + ".q_proj", config.qkvBias);
  Value k = linear(emit, x, name + ".k_proj", config.qkvBias);
  Value v = linear(emit, x, name + ".v_proj", config.qkvBias);
  emit.setScope(name);
  q = rotate(emit, emit.view(q, {batch, seq, config.heads, dim}, "q"), rotation, "q");
  k = rotate(emit, emit.view(k, {batch, seq, keys, dim}, "k"), rotation, "k");
  v = emit.view(v, {batch, seq, keys, dim}, "v");
  if (config.groups() > 1) // query head h reads key/value head h / groups
    q = emit.view(q, {batch, seq, keys, config.groups(), dim}, "q");
  Value mixed = emit.causalAttention(q, k, v, 1 / std::sqrt(double(dim)));
  return emit.dropout(linear(emit, mixed, name + ".o_proj", config.outBias), config.residualDropout,
                      "dropout");
}

static Value mlp(Emitter &emit, Value x, const std::string &name) {
  const ModelConfig &config = emit.config;
  Value gate = linear(emit, x, name + ".gate_proj", config.mlpBias);
  Value up = linear(emit, x, name + ".up_proj", config.mlpBias);
  emit.setScope(name);
  Value gated = emit.map("nc,nc->nc", {gate, up}, emit.narrow, "gated", [&](ArrayRef<Scalar> in) {
    return activation(config.activation, in[0]) * in[1];
  });
  return emit.dropout(linear(emit, gated, name + ".down_proj", config.mlpBias),
                      config.residualDropout, "dropout");
}

void modelgen::emitLlama(Emitter &emit) {
  const ModelConfig &config = emit.config;
  Rotation rotation(emit);
  Value embedded = emit.embed(emit.param("model.embed_tokens.weight"), "embed_tokens");
  Value x = emit.view(embedded, {config.tokens(), config.hidden}, "embed_tokens");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "model.layers." + std::to_string(layer);
    Value a =
        attention(emit, norm(emit, x, name + ".input_layernorm"), name + ".self_attn", rotation);
    emit.setScope(name);
    x = emit.add(x, a, "residual");
    Value m = mlp(emit, norm(emit, x, name + ".post_attention_layernorm"), name + ".mlp");
    emit.setScope(name);
    x = emit.add(x, m, "residual");
  }
  x = norm(emit, x, "model.norm");
  emit.setScope("");
  emit.finish(x, emit.param(config.tied ? "model.embed_tokens.weight" : "lm_head.weight"));
}
