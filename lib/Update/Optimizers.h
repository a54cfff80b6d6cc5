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

/// Builds the selection of `with` for an element with weight decay, else of `without`.
using DecayFn = function_ref<Value(Value with, Value without)>;

/// An update rule, written once for one element.
class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// Returns the names (`fsdp.state`) of the flat buffers of optimizer state.
  virtual SmallVector<StringRef> getStateNames() const = 0;

  /// Returns true if `buildElement` treats elements with weight decay differently.
  virtual bool hasDecay() const = 0;

  /// Count and build the f64 factors that `buildElement` needs, which depend only on the learning
  /// rate and the number of the step (from 1).
  virtual unsigned getNumFactors() const = 0;
  virtual SmallVector<Value> buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const = 0;

  /// Returns the new parameter and state. `old` holds the old parameter and state. All values have
  /// the type of `grad`.
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
