//===- Reduce.h - Sums in rank order ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// out[i] = ((+0 + x0[i]) + x1[i]) + ... , times 1/n for an average. f64 in f64, the
// others in f32, rounded once at the end. The same bits for every vector width: no
// two elements meet, and nothing is contracted.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
#define FSDPRT_COLLECTIVES_LOCAL_REDUCE_H

#include "core/DType.h"
#include <cstddef>

namespace fsdprt {

/// `sources[j]` + offset is where rank j's elements begin; a null source is left out.
/// `target` may be one of the ranges that are read.
void reduceInOrder(DType type, bool average, const std::byte *const *sources, uint32_t ranks,
                   uint64_t offset, uint64_t elements, std::byte *target);

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_LOCAL_REDUCE_H
