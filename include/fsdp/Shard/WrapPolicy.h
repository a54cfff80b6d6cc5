//===- WrapPolicy.h - Which layer a parameter belongs to --------*- C++ -*-===//
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
  /// The unit that the IR asks for (`fsdp.unit = "name"`); none: up to the policy.
  std::optional<StringRef> unit = std::nullopt;
};

/// For each parameter the prefix of its name that is its layer, empty for those
/// of the root unit. Layers are found by the numbers in names.
SmallVector<StringRef> findLayers(ArrayRef<NamedParam> params);

/// The same for layers given as patterns, `h.*` or `encoder.*.block_[0-9],...`:
/// matched component by component against the start of a name. Every pattern
/// must match something; what is wrong is said through `emitError`.
FailureOr<SmallVector<StringRef>> matchLayers(ArrayRef<NamedParam> params, StringRef patterns,
                                              function_ref<InFlightDiagnostic()> emitError);

/// The same for units of at least `minimum` elements (GroupBySize.cpp).
SmallVector<StringRef> groupBySize(ArrayRef<NamedParam> params, int64_t minimum);

/// The same for units listed in a JSON file (ManualWrap.cpp). Names are kept in
/// the context of `loc`.
FailureOr<SmallVector<StringRef>> wrapManually(ArrayRef<NamedParam> params, StringRef path,
                                               Location loc);

/// What --auto-wrap-policy and its companions say.
struct WrapOptions {
  StringRef policy;       ///< transformer, size, manual or none
  StringRef layerPattern; ///< with transformer
  StringRef wrapFile;     ///< with manual
  int64_t minNumParams;   ///< with size; 0: the default
};

/// `size_based_auto_wrap_policy` of FSDP has this default, too.
constexpr int64_t kDefaultMinNumParams = 100'000'000;

/// Options that contradict one another, and words that are none.
LogicalResult checkWrapOptions(const WrapOptions &options, Location loc);

/// For each parameter the name of its unit, empty for the root (ChooseUnits.cpp).
/// Names are kept in the context of `loc`. `gathers`: parameters are gathered at
/// all, so that one unit for everything has its price.
FailureOr<SmallVector<StringRef>>
chooseUnits(ArrayRef<NamedParam> params, const WrapOptions &options, bool gathers, Location loc);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_WRAPPOLICY_H
