//===- Reduce.h - Sums in rank order ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes out[i] = ((+0 + x0[i]) + x1[i]) + ... , times 1/n for an average. Sums are in f64 for
// f64, and otherwise in f32, and are rounded once at the end. The result does not depend on the
// vector width, because each element is summed separately and multiplications are not fused with
// additions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
#define FSDPRT_COLLECTIVES_LOCAL_REDUCE_H

#include "core/DType.h"
#include <cstddef>

namespace fsdprt {

/// Sums `elements` elements of each of `ranks` sources into `target`. The elements of source j
/// begin at element `offset` of sources[j]. A null source adds nothing but counts in an average.
/// `target` may be the summed range of a source.
void reduceInOrder(DType type, bool average, const std::byte *const *sources, uint32_t ranks,
                   uint64_t offset, uint64_t elements, std::byte *target);

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
