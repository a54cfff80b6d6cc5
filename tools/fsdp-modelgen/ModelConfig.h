//===- ModelConfig.h - Configuration of a generated model -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_MODELGEN_MODELCONFIG_H
#define FSDP_MODELGEN_MODELCONFIG_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp::modelgen {

enum class Family { GPT2, Llama };
inline StringRef nameOf(Family family) { return family == Family::GPT2 ? "gpt2" : "llama"; }

enum class DType { F32, F64, F16, BF16 };
enum class Activation { GeluTanh, GeluErf, Silu, Relu };

/// The scaling of the frequencies of rotary embeddings. It adapts a model to sequences that are
/// longer than those of its pretraining.
struct RopeScaling {
  enum class Kind { None, Linear, Llama3 };
  Kind kind = Kind::None;
  double factor = 1, lowFreqFactor = 1, highFreqFactor = 4;
  int64_t originalPositions = 8192;
};

/// A model's configuration. Sizes are in elements. `resolve` derives the fields that are not set
/// from the fields that are set.
struct ModelConfig {
  Family family = Family::GPT2;
  DType dtype = DType::F32;
  int64_t layers = 0, hidden = 0, heads = 0, vocab = 0, positions = 0, batch = 1;
  std::optional<int64_t> kvHeads, headDim, intermediate, seq, seed;
  Activation activation = Activation::GeluTanh;
  double epsilon = 0, initRange = 0.02, ropeTheta = 10000;
  double embeddingDropout = 0, attentionDropout = 0, residualDropout = 0;
  RopeScaling scaling;
  bool tied = false; // true if the output head is the embedding table
  bool qkvBias = false, outBias = false, mlpBias = false; // only for Llama; GPT-2 always has biases
  bool scaleScores = true, scaleScoresByLayer = false;    // GPT-2

  /// Returns Hugging Face's configuration of GPT-2 124M or Llama 7B.
  static ModelConfig defaults(Family family);

  /// Sets unset fields. Returns an error for each invalid value or combination.
  std::vector<std::string> resolve();

  /// Returns the number of query heads that share one key/value head.
  int64_t groups() const { return heads / *kvHeads; }
  bool drops() const { return embeddingDropout > 0 || attentionDropout > 0 || residualDropout > 0; }
  int64_t tokens() const { return batch * *seq; }
};

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_MODELCONFIG_H
