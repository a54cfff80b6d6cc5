//===- Reduce.h - Sums in rank order ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes out[i] = ((+0 + x0[i]) + x1[i]) + ... , and for an average multiplies each sum by 1/n.
// If the elements are f64, the sums are computed in f64, and otherwise in f32. Each sum is rounded
// to the type of the elements once, at the end. The result does not depend on the vector width:
// each element is summed separately, and a multiplication is never fused with an addition.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
#define FSDPRT_COLLECTIVES_LOCAL_REDUCE_H

#include "core/DType.h"
#include <cstddef>

namespace fsdprt {

/// Sums `elements` elements of each of `ranks` sources, and writes the sums to `target`. The first
/// of these elements is `offset` bytes after the address sources[j]. If the address of a source is
/// null, this source adds nothing to the sums, but still counts as a source in an average. `target`
/// may be the address at which the elements of a source begin.
void reduceInOrder(DType type, bool average, const std::byte *const *sources, uint32_t ranks,
                   uint64_t offset, uint64_t elements, std::byte *target);

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
