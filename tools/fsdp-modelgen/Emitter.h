//===- Emitter.h - Layers of a transformer as linalg on tensors --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The vocabulary that the families are written in. Ops over several tensors are
// given as in einsum: one letter per loop, operands before "->", the result
// after it; loops that the result lacks are summed over.
//
//   contract("nk,ok->no", x, w)          x · wᵀ
//   map("nc,c->nc", {x, b}, type, body)  one body per element
//   sum("nc->n", {x}, body)              the sum of bodies over c
//
// Sums, statistics and bodies are in the *wide* type (f64 in an f64 model, f32
// otherwise); values between layers are in the model's type.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_MODELGEN_EMITTER_H
#define FSDP_MODELGEN_EMITTER_H

#include "ModelConfig.h"
#include "Scalar.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp::modelgen {

/// One parameter under its Hugging Face name.
struct Parameter {
  enum class Init { Zeros, Ones, Normal };
  std::string name;
  SmallVector<int64_t> shape;
  Init init;
  double deviation = 0; // of Normal
};

/// Writes one loss function.
class Emitter {
public:
  using Body = llvm::function_ref<Scalar(ArrayRef<Scalar>)>;

  /// Begins `@loss(params…, tokens, targets)` at the end of `module`.
  Emitter(ModuleOp module, const ModelConfig &config, ArrayRef<Parameter> parameters);

  const ModelConfig &config;
  FloatType narrow, wide;

  Value param(StringRef name) const;
  Value tokens() { return behindParameters(0); }
  Value targets() { return behindParameters(1); }

  /// Results are named `<scope>.<what>`, or `<scope>`, in the text from here on.
  void setScope(StringRef name) { scope = name.str(); }

  // Building blocks.
  Value contract(StringRef spec, Value a, Value b, StringRef what);
  Value map(StringRef spec, ValueRange operands, FloatType type, StringRef what, Body body);
  Value sum(StringRef spec, ValueRange operands, StringRef what, Body body);
  Value view(Value value, ArrayRef<int64_t> shape, StringRef what);
  Value slice(Value value, int64_t dim, int64_t offset, int64_t size, StringRef what);
  Value concat(Value a, Value b, int64_t dim, StringRef what);
  Value table(ArrayRef<int64_t> shape, ArrayRef<double> values, StringRef what);

  // Layers. Activations are [tokens, channels].
  Value embed(Value table, StringRef what);
  Value add(Value a, Value b, StringRef what);
  /// x, whose dimensions begin with the sequences (or their tokens): in training each element is 0
  /// with this probability, and else larger, so that its mean stays.
  Value dropout(Value x, double probability, StringRef what);
  /// spec: how x meets the weight, "nk,ko->no" (GPT-2) or "nk,ok->no"; no bias when null.
  Value linear(StringRef spec, Value x, Value weight, Value bias);
  Value layerNorm(Value x, Value weight, Value bias);
  Value rmsNorm(Value x, Value weight);
  Value activate(Value x, StringRef what);
  /// q [b, t, h, d] or, with shared key/value heads, [b, t, h, g, d]; k and v [b, t, h, d].
  Value causalAttention(Value q, Value k, Value v, double scale);
  /// Ends the function: mean cross-entropy of x · headᵀ.
  void finish(Value x, Value head);

private:
  struct Loops; // a parsed spec

  Location loc(StringRef what);
  Value generic(const Loops &loops, ValueRange operands, Value init, StringRef what,
                llvm::function_ref<Value(OpBuilder &, Location, ArrayRef<Scalar>, Value)> body);
  Value behindParameters(unsigned index) { return function.getArgument(params.size() + index); }
  Value zeros(ArrayRef<int64_t> shape, FloatType type);
  Value empty(ArrayRef<int64_t> shape, FloatType type);
  Value round(Value value, StringRef what);
  Value maskFuture(Value scores, double scale);

  OpBuilder builder;
  func::FuncOp function;
  llvm::StringMap<Value> params;
  std::string scope;
  int64_t randomSites = 0; // numbered in order
};

/// The function applied between the two halves of an MLP.
Scalar activation(Activation kind, Scalar x);

/// The families: their parameters in Hugging Face order, and their loss function.
std::vector<Parameter> gpt2Parameters(const ModelConfig &config);
void emitGPT2(Emitter &emit);
std::vector<Parameter> llamaParameters(const ModelConfig &config);
void emitLlama(Emitter &emit);

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_EMITTER_H
