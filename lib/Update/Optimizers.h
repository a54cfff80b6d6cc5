//===- Optimizers.h - The update rule of one element ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_UPDATE_OPTIMIZERS_H
#define FSDP_LIB_UPDATE_OPTIMIZERS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <memory>

namespace mlir {
namespace fsdp {

/// Builds a selection whose result is `with` for an element with weight decay, and `without` for
/// any other element.
using DecayFn = function_ref<Value(Value with, Value without)>;

/// An update rule, given by the ops that update one element.
class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// Returns the names (`fsdp.state`) of the flat buffers of optimizer state.
  virtual SmallVector<StringRef> getStateNames() const = 0;

  /// Returns true if `buildElement` treats elements with and without weight decay differently.
  virtual bool hasDecay() const = 0;

  /// The method getNumFactors() returns the number of factors that buildElement() needs, and the
  /// method buildFactors() builds these factors. The factors are f64 and depend only on the
  /// learning rate and the number of the step (from 1).
  virtual unsigned getNumFactors() const = 0;
  virtual SmallVector<Value> buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const = 0;

  /// Builds the new parameter and state of an element. `old` holds the old parameter and state. All
  /// values have the type of `grad`.
  virtual SmallVector<Value> buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                          ValueRange factors, DecayFn decay) const = 0;
};

struct OptimizerOptions {
  StringRef name;
  double beta1, beta2, eps, weightDecay, momentum;
};

/// Returns the optimizer named in the options. Returns null and emits an error if an option is
/// invalid.
std::unique_ptr<Optimizer> createOptimizer(const OptimizerOptions &options,
                                           function_ref<InFlightDiagnostic()> emitError);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_OPTIMIZERS_H
