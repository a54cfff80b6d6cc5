//===- WrapPolicy.h - Assignment of parameters to units ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_WRAPPOLICY_H
#define FSDP_SHARD_WRAPPOLICY_H

#include "mlir/IR/Diagnostics.h"

namespace mlir {
namespace fsdp {

struct NamedParam {
  StringRef name;
  int64_t rank;
  int64_t elements = 0;
  int64_t bytes = 0;
  /// Name of the unit from the attribute `fsdp.unit`; without a value, the policy chooses the unit.
  std::optional<StringRef> unit = std::nullopt;
};

/// Finds the layers of parameters by the numbers in their names. Returns, for each parameter, the
/// prefix of its name that identifies the layer; an empty prefix for the root unit.
SmallVector<StringRef> findLayers(ArrayRef<NamedParam> params);

/// Finds the layers of parameters by prefix patterns such as `h.*` or `encoder.*.block_[0-9],...`.
/// The result is that of findLayers. Reports errors through `emitError`.
FailureOr<SmallVector<StringRef>> matchLayers(ArrayRef<NamedParam> params, StringRef patterns,
                                              function_ref<InFlightDiagnostic()> emitError);

/// Returns the unit name of each parameter, for units of at least `minimum` elements
/// (GroupBySize.cpp).
SmallVector<StringRef> groupBySize(ArrayRef<NamedParam> params, int64_t minimum);

/// Returns the name of the unit of each parameter, as listed in the JSON file `path`
/// (ManualWrap.cpp). The context of `loc` owns the names.
FailureOr<SmallVector<StringRef>> wrapManually(ArrayRef<NamedParam> params, StringRef path,
                                               Location loc);

/// Values of --auto-wrap-policy and the options that depend on it.
struct WrapOptions {
  StringRef policy;       ///< transformer, size, manual or none
  StringRef layerPattern; ///< for policy transformer
  StringRef wrapFile;     ///< for policy manual
  int64_t minNumParams;   ///< least elements of a unit (size, transformer); 0 for the default
};

/// Default of minNumParams for policy size, as in PyTorch's `size_based_auto_wrap_policy`.
constexpr int64_t kDefaultMinNumParams = 100'000'000;

/// Emits errors for options that contradict one another and for unknown policies.
LogicalResult checkWrapOptions(const WrapOptions &options, Location loc);

/// Returns the unit name of each parameter; an empty name for the root unit. The context of `loc`
/// owns the names. If `gathers` is set, warns if the whole model is one unit.
FailureOr<SmallVector<StringRef>>
chooseUnits(ArrayRef<NamedParam> params, const WrapOptions &options, bool gathers, Location loc);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_WRAPPOLICY_H
