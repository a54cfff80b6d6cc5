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
};

/// For each parameter the prefix of its name that is its layer, empty for those
/// of the root unit. Layers are found by the numbers in names.
SmallVector<StringRef> findLayers(ArrayRef<NamedParam> params);

/// The same for layers given as patterns, `h.*` or `encoder.*.block_[0-9],...`:
/// matched component by component against the start of a name. Every pattern
/// must match something; what is wrong is said through `emitError`.
FailureOr<SmallVector<StringRef>>
matchLayers(ArrayRef<NamedParam> params, StringRef patterns,
            function_ref<InFlightDiagnostic()> emitError);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_WRAPPOLICY_H
