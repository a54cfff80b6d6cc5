//===- Launches.h - Collectives started by one launch ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_LAUNCHES_H
#define FSDPRT_ARTIFACT_LAUNCHES_H

#include "fsdprt/artifact_generated.h"
#include <algorithm>

namespace fsdprt {

/// Returns true if a single launch starts the consecutive commands `first` and `second`. Both must
/// be collectives of the same type, along the same axes, and on the same channel other than 0.
inline bool areOneLaunch(const fb::Command &first, const fb::Command &second) {
  const fb::Collective *a = first.body_as_Collective(), *b = second.body_as_Collective();
  if (!a || !b || a->channel() == 0 || a->channel() != b->channel() || a->kind() != b->kind() ||
      !a->axes() || !b->axes())
    return false;
  return std::equal(a->axes()->begin(), a->axes()->end(), b->axes()->begin(), b->axes()->end());
}

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_LAUNCHES_H
