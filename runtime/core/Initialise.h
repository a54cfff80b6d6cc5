//===- Initialise.h - Initial values of parameters --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Element i of a parameter depends only on the seed, the parameter's name and i. If the artifact
// stores values of the parameter, it is element i of these values.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_INITIALISE_H
#define FSDPRT_CORE_INITIALISE_H

#include "core/DType.h"

namespace fsdprt {

/// Distribution by kind: constant a; normal with mean a and standard deviation b; uniform in [a,
/// b).
struct Distribution {
  fb::InitKind kind;
  double a, b;
};

/// Writes elements [first, first + count) of a parameter, as `type`. `stream` is streamOf() of the
/// parameter's name.
void initialValues(const Distribution &distribution, uint64_t seed, uint64_t stream, uint64_t first,
                   uint64_t count, DType type, void *to);

/// Values of a parameter in the artifact: all elements, or one value for all elements (`same`).
struct StoredValues {
  const std::byte *data;
  DType type;
  bool same;
};

/// Writes elements [first, first + count) of the stored values, converted to `type`.
void storedValues(const StoredValues &values, uint64_t first, uint64_t count, DType type, void *to);

} // namespace fsdprt

#endif // FSDPRT_CORE_INITIALISE_H
