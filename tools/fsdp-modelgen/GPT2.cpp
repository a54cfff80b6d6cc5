//===- GPT2.cpp - The GPT-2 family ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   x = wte[tokens] + wpe[0..seq)
//   per layer:  x += c_proj(attention(c_attn(ln_1(x))))
//               x += c_proj(gelu(c_fc(ln_2(x))))
//   loss = cross_entropy(ln_f(x) · wteᵀ, targets)
//
// The names, shapes, order and initial values of the parameters are those of Hugging Face's
// GPT2Model. The linear layers of GPT2Model (Conv1D) store their weights as [in, out].
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;

using Init = Parameter::Init;

std::vector<Parameter> modelgen::gpt2Parameters(const ModelConfig &config) {
  int64_t c = config.hidden, inner = *config.intermediate;
  double deviation = config.initRange, residual = deviation / std::sqrt(2.0 * config.layers);
  std::vector<Parameter> list;
  auto norm = [&](const std::string &name) {
    list.push_back({name + ".weight", {c}, Init::Ones});
    list.push_back({name + ".bias", {c}, Init::Zeros});
  };
  auto conv1d = [&](const std::string &name, int64_t in, int64_t out, double deviation) {
    list.push_back({name + ".weight", {in, out}, Init::Normal, deviation});
    list.push_back({name + ".bias", {out}, Init::Zeros});
  };
  list.push_back({"wte.weight", {config.vocab, c}, Init::Normal, deviation});
  list.push_back({"wpe.weight", {config.positions, c}, Init::Normal, deviation});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string h = "h." + std::to_string(layer);
    norm(h + ".ln_1");
    conv1d(h + ".attn.c_attn", c, 3 * c, deviation);
    conv1d(h + ".attn.c_proj", c, c, residual);
    norm(h + ".ln_2");
    conv1d(h + ".mlp.c_fc", c, inner, deviation);
    conv1d(h + ".mlp.c_proj", inner, c, residual);
  }
  norm("ln_f");
  if (!config.tied)
    list.push_back({"lm_head.weight", {config.vocab, c}, Init::Normal, deviation});
  return list;
}

static Value norm(Emitter &emit, Value x, const std::string &name) {
  emit.setScope(name);
  return emit.layerNorm(x, emit.param(name + ".weight"), emit.param(name + ".bias"));
}

static Value conv1d(Emitter &emit, Value x, const std::string &name) {
  emit.setScope(name);
  return emit.linear("nk,ko->no", x, emit.param(name + ".weight"), emit.param(name + ".bias"));
}

/// Builds the sum of the token embeddings and the position embeddings. Its shape is [tokens,
/// channels].
static Value embedding(Emitter &emit) {
  const ModelConfig &config = emit.config;
  Value words = emit.embed(emit.param("wte.weight"), "wte");
  Value places = emit.slice(emit.param("wpe.weight"), 0, 0, *config.seq, "wpe");
  Value x = emit.map("btc,tc->btc", {words, places}, emit.narrow, "embedding",
                     [](ArrayRef<Scalar> in) { return in[0] + in[1]; });
  x = emit.dropout(x, config.embeddingDropout, "dropout");
  return emit.view(x, {config.tokens(), config.hidden}, "embedding");
}

static double attentionScale(const ModelConfig &config, int64_t layer) {
  double scale = config.scaleScores ? 1 / std::sqrt(double(*config.headDim)) : 1;
  return config.scaleScoresByLayer ? scale / double(layer + 1) : scale;
}

static Value attention(Emitter &emit, Value x, const std::string &name, int64_t layer) {
  const ModelConfig &config = emit.config;
  Value qkv = conv1d(emit, x, name + ".c_attn");
  emit.setScope(name);
  auto part = [&](int64_t index, StringRef what) {
    Value flat = emit.slice(qkv, 1, index * config.hidden, config.hidden, what);
    return emit.view(flat, {config.batch, *config.seq, config.heads, *config.headDim}, what);
  };
  Value q = part(0, "q"), k = part(1, "k"), v = part(2, "v");
  Value mixed = emit.causalAttention(q, k, v, attentionScale(config, layer));
  return emit.dropout(conv1d(emit, mixed, name + ".c_proj"), config.residualDropout, "dropout");
}

static Value mlp(Emitter &emit, Value x, const std::string &name) {
  Value wide = conv1d(emit, x, name + ".c_fc");
  emit.setScope(name);
  Value active = emit.activate(wide, "act");
  return emit.dropout(conv1d(emit, active, name + ".c_proj"), emit.config.residualDropout,
                      "dropout");
}

void modelgen::emitGPT2(Emitter &emit) {
  Value x = embedding(emit);
  for (int64_t layer = 0; layer < emit.config.layers; ++layer) {
    std::string h = "h." + std::to_string(layer);
    Value a = attention(emit, norm(emit, x, h + ".ln_1"), h + ".attn", layer);
    emit.setScope(h);
    x = emit.add(x, a, "residual");
    Value m = mlp(emit, norm(emit, x, h + ".ln_2"), h + ".mlp");
    emit.setScope(h);
    x = emit.add(x, m, "residual");
  }
  x = norm(emit, x, "ln_f");
  emit.setScope("");
  emit.finish(x, emit.param(emit.config.tied ? "wte.weight" : "lm_head.weight"));
}
