//===- Emitter.h - Layers of a transformer as linalg on tensors --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the layers of the model families. The loops of an op are described by a specification as
// in einsum. Each letter is a loop; the operands are written before "->" and the result after it.
// The op sums over the loops whose letters are missing in the result.
//
//   contract("nk,ok->no", x, w)          x · wᵀ
//   map("nc,c->nc", {x, b}, type, body)  one body per element
//   sum("nc->n", {x}, body)              the sum of bodies over c
//
// Sums, statistics and the bodies of ops are computed in the *wide* type, which is f64 in an f64
// model and f32 in other models. Values between layers are in the model's type.
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

/// A parameter of a model. Its name is the name that the parameter has in Hugging Face's model.
struct Parameter {
  enum class Init { Zeros, Ones, Normal };
  std::string name;
  SmallVector<int64_t> shape;
  Init init;
  double deviation = 0; // standard deviation for Init::Normal
};

class Emitter {
public:
  using Body = llvm::function_ref<Scalar(ArrayRef<Scalar>)>;

  /// Creates `@loss(params…, tokens, targets)` at the end of `module`.
  Emitter(ModuleOp module, const ModelConfig &config, ArrayRef<Parameter> parameters);

  const ModelConfig &config;
  FloatType narrow, wide;

  Value param(StringRef name) const;
  Value tokens() { return afterParameters(0); }
  Value targets() { return afterParameters(1); }

  /// Sets the scope. The name of a result is `<scope>.<what>`, or `<scope>` if `what` is empty.
  void setScope(StringRef name) { scope = name.str(); }

  Value contract(StringRef spec, Value a, Value b, StringRef what);
  Value map(StringRef spec, ValueRange operands, FloatType type, StringRef what, Body body);
  Value sum(StringRef spec, ValueRange operands, StringRef what, Body body);
  Value view(Value value, ArrayRef<int64_t> shape, StringRef what);
  Value slice(Value value, int64_t dim, int64_t offset, int64_t size, StringRef what);
  Value concat(Value a, Value b, int64_t dim, StringRef what);
  Value table(ArrayRef<int64_t> shape, ArrayRef<double> values, StringRef what);

  // Layers. The inputs and results of layers have the shape [tokens, channels].
  Value embed(Value table, StringRef what);
  Value add(Value a, Value b, StringRef what);
  /// Applies dropout to x. The first dimension of x counts sequences or tokens. In training, an
  /// element becomes 0 with the probability `probability`. The other elements are multiplied by a
  /// factor, so that the expected value of each element does not change.
  Value dropout(Value x, double probability, StringRef what);
  /// Builds a linear layer. `spec` describes the product of x and the weight: "nk,ko->no" (GPT-2)
  /// or "nk,ok->no" (Llama). `bias` may be null.
  Value linear(StringRef spec, Value x, Value weight, Value bias);
  Value layerNorm(Value x, Value weight, Value bias);
  Value rmsNorm(Value x, Value weight);
  Value activate(Value x, StringRef what);
  /// Builds causal attention. q has the shape [b, t, h, d] or, if several query heads share a
  /// key/value head, [b, t, h, g, d]. k and v have the shape [b, t, h, d].
  Value causalAttention(Value q, Value k, Value v, double scale);
  /// Ends the function, whose result is the mean cross-entropy of the scores x · headᵀ.
  void finish(Value x, Value head);

private:
  struct Loops; // a parsed specification

  Location loc(StringRef what);
  Value generic(const Loops &loops, ValueRange operands, Value init, StringRef what,
                llvm::function_ref<Value(OpBuilder &, Location, ArrayRef<Scalar>, Value)> body);
  Value afterParameters(unsigned index) { return function.getArgument(params.size() + index); }
  Value zeros(ArrayRef<int64_t> shape, FloatType type);
  Value empty(ArrayRef<int64_t> shape, FloatType type);
  Value round(Value value, StringRef what);
  Value maskFuture(Value scores, double scale);

  OpBuilder builder;
  func::FuncOp function;
  llvm::StringMap<Value> params;
  std::string scope;
  int64_t randomSites = 0; // number of dropout ops that have been built
};

Scalar activation(Activation kind, Scalar x);

/// For each family of models: a function that returns the parameters in Hugging Face's order, and a
/// function that builds the loss function.
std::vector<Parameter> gpt2Parameters(const ModelConfig &config);
void emitGPT2(Emitter &emit);
std::vector<Parameter> llamaParameters(const ModelConfig &config);
void emitLlama(Emitter &emit);

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_EMITTER_H
