//===- Initialise.h - Initial values of parameters --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The initial value of element i of a parameter depends only on the seed, the name of the
// parameter, and i. If the artifact stores values of the parameter, the initial value of element i
// is the stored value i.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_INITIALISE_H
#define FSDPRT_CORE_INITIALISE_H

#include "core/DType.h"

namespace fsdprt {

/// Distribution of initial values: the constant `a`, a normal distribution with mean `a` and
/// standard deviation `b`, or a uniform distribution in [a, b).
struct Distribution {
  fb::InitKind kind;
  double a, b;
};

/// Writes the initial values of elements [first, first + count) of a parameter to `to`, as `type`.
/// `stream` is the result of streamOf() for the name of the parameter.
void initialValues(const Distribution &distribution, uint64_t seed, uint64_t stream, uint64_t first,
                   uint64_t count, DType type, void *to);

/// Initial values of a parameter that the artifact stores. If `same` is true, `data` contains a
/// single value, which is the value of all elements.
struct StoredValues {
  const std::byte *data;
  DType type;
  bool same;
};

/// Writes elements [first, first + count) of the stored values to `to`, converted to `type`.
void storedValues(const StoredValues &values, uint64_t first, uint64_t count, DType type, void *to);

} // namespace fsdprt

#endif // FSDPRT_CORE_INITIALISE_H
