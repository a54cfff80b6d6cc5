//===- ParamSlice.h - The part of a parameter that a rank has ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes how a parameter of an artifact is split over the axis "tensor" (core/SlicedShape.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_PARAMSLICE_H
#define FSDPRT_ARTIFACT_PARAMSLICE_H

#include "artifact/Mesh.h"
#include "core/SlicedShape.h"
#include "fsdprt/artifact_generated.h"

namespace fsdprt {

class WorkLimit;

class ParamSlice : public SlicedShape {
public:
  /// `param` must have passed the verifier of the artifact for `mesh`.
  ParamSlice(const fb::Param &param, const Mesh &mesh);

  /// Returns the coordinate of a rank that selects its slice.
  static uint64_t coordinateOf(const Mesh &mesh, uint64_t rank) {
    return mesh.indexOn("tensor", rank);
  }
};

/// Returns true if a program of the reference uses the layout `index`. The artifact need not have
/// passed the verifier.
bool isReferenceLayout(const fb::Manifest &manifest, uint32_t index, WorkLimit &work);

/// Describes why the split of `param` is invalid for `mesh`. Returns an empty text if it is valid.
std::string problemOfSplit(const fb::Param &param, const Mesh &mesh);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_PARAMSLICE_H
