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
  /// Value of the attribute `fsdp.unit` of the parameter, which is the name of a unit. If the
  /// parameter has no such attribute, the policy chooses the unit.
  std::optional<StringRef> unit = std::nullopt;
};

/// Finds the layer to which each parameter belongs, by the numbers in the names of the parameters.
/// Returns, for each parameter, the prefix of its name that identifies its layer. The prefix is
/// empty if the parameter belongs to the root unit.
SmallVector<StringRef> findLayers(ArrayRef<NamedParam> params);

/// Finds the layer to which each parameter belongs, by prefix patterns such as `h.*` or
/// `encoder.*.block_[0-9],...`. The result has the same form as the result of findLayers. Reports
/// errors through `emitError`.
FailureOr<SmallVector<StringRef>> matchLayers(ArrayRef<NamedParam> params, StringRef patterns,
                                              function_ref<InFlightDiagnostic()> emitError);

/// Groups the parameters into units of at least `minimum` elements (GroupBySize.cpp). Returns, for
/// each parameter, the name of its unit.
SmallVector<StringRef> groupBySize(ArrayRef<NamedParam> params, int64_t minimum);

/// Returns the name of the unit of each parameter. The JSON file `path` lists the parameters of
/// each unit (ManualWrap.cpp). The context of `loc` owns the names.
FailureOr<SmallVector<StringRef>> wrapManually(ArrayRef<NamedParam> params, StringRef path,
                                               Location loc);

/// Values of the option --auto-wrap-policy and of the options that depend on it.
struct WrapOptions {
  StringRef policy;       ///< name of the policy: transformer, size, manual or none
  StringRef layerPattern; ///< patterns of layers for the policy transformer
  StringRef wrapFile;     ///< path of the JSON file for the policy manual
  /// For the policies size and transformer, the least number of elements of a unit. 0 selects the
  /// default.
  int64_t minNumParams;
};

/// Default of minNumParams for the policy size. PyTorch's `size_based_auto_wrap_policy` has the
/// same default.
constexpr int64_t kDefaultMinNumParams = 100'000'000;

/// Emits an error if options contradict one another, or if the policy is unknown.
LogicalResult checkWrapOptions(const WrapOptions &options, Location loc);

/// Returns the name of the unit of each parameter. The name of the root unit is empty. The context
/// of `loc` owns the names. If `gathers` is set, warns if the whole model is one unit.
FailureOr<SmallVector<StringRef>>
chooseUnits(ArrayRef<NamedParam> params, const WrapOptions &options, bool gathers, Location loc);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_WRAPPOLICY_H
