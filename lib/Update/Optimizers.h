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

/// Chooses between the value of an element with weight decay and without.
using DecayFn = function_ref<Value(Value with, Value without)>;

/// An update rule. It is written once, for one element.
class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// Values of `fsdp.state` of the state, one flat buffer each.
  virtual SmallVector<StringRef> getStateNames() const = 0;

  /// Whether `buildElement` tells elements with weight decay from others.
  virtual bool hasDecay() const = 0;

  /// What `buildElement` needs of a step, computed once: from the learning rate
  /// and the number of this step (from 1), f64 all.
  virtual unsigned getNumFactors() const = 0;
  virtual SmallVector<Value> buildFactors(ImplicitLocOpBuilder &b, Value lr, Value step) const = 0;

  /// The new parameter and state. `old` are the parameter and the state; all
  /// values are of one type.
  virtual SmallVector<Value> buildElement(ImplicitLocOpBuilder &b, Value grad, ValueRange old,
                                          ValueRange factors, DecayFn decay) const = 0;
};

struct OptimizerOptions {
  StringRef name;
  double beta1, beta2, eps, weightDecay, momentum;
};

/// The optimizer called so; null when an option is wrong, which is said through
/// `emitError`.
std::unique_ptr<Optimizer> createOptimizer(const OptimizerOptions &options,
                                           function_ref<InFlightDiagnostic()> emitError);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_LIB_UPDATE_OPTIMIZERS_H
