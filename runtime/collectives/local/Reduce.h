//===- Reduce.h - Sums in rank order ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes out[i] = ((+0 + x0[i]) + x1[i]) + ... , times 1/n for an average. Sums of f64 elements
// are computed in f64, and other sums in f32. Each sum is rounded once at the end. The result does
// not depend on the vector width, because each element is summed separately and multiplications are
// not fused with additions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
#define FSDPRT_COLLECTIVES_LOCAL_REDUCE_H

#include "core/DType.h"
#include <cstddef>

namespace fsdprt {

/// Sums `elements` elements of each of `ranks` sources into `target`. The elements of source j
/// begin at element `offset` of sources[j]. A null source adds nothing, but an average counts it as
/// a source. `target` may be the address of the first summed element of a source.
void reduceInOrder(DType type, bool average, const std::byte *const *sources, uint32_t ranks,
                   uint64_t offset, uint64_t elements, std::byte *target);

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
