//===- Verifier.h - Every rule a manifest has to meet -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// FlatBuffers' verifier has shown that the manifest can be read; this shows that it
// can be run: whatever passes touches only its arena, ends, and calls only kernels
// whose bindings are large enough. The rules are numbered (V1..) in the two files.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_VERIFIER_H
#define FSDPRT_ARTIFACT_VERIFIER_H

#include "artifact/Arenas.h"
#include "artifact/Mesh.h"
#include "fsdprt/artifact_generated.h"
#include <string>
#include <vector>

namespace fsdprt {

/// What is asked of an artifact: everything, to run it; or that commands can be read and name what
/// there is, to walk it (null/NullDevice.h), which finds out itself about arenas, alignment, what
/// overlaps and what is in flight: all but (V5), (V6), (V15), and what (V12), (V13), (V14), (V16)
/// and (V19) say of where ranges lie.
enum class Rules { all, form };

/// Throws Error with the file, the place, what was expected and what was found. `valuesBytes`: the
/// size of the file's section of values.
Mesh verifyManifest(const std::string &file, const fb::Manifest &manifest, uint64_t valuesBytes,
                    Rules rules);

/// The part over programs, called by verifyManifest once the rest has passed.
void verifyPrograms(const std::string &file, const fb::Manifest &manifest, const Mesh &mesh,
                    Rules rules);

/// Of the scratch of kernels on a GPU.
constexpr uint64_t gpuScratchAlignment = 256;

/// What is wrong with a phase, as a launch on a GPU or a function of a CPU; empty: nothing
/// (VerifyGpu.cpp).
std::string problemOfPhase(const fb::Kernel &kernel, const fb::Phase &phase, bool isForGpu);
/// What is wrong with where the tensor maps, or matrices, of a well-formed launch lie in its
/// bindings; empty: nothing.
std::string problemOfPlaces(const fb::Kernel &kernel, const fb::Phase &phase);
/// The same of a library's product, and of where its matrices lie (VerifyProducts.cpp).
std::string problemOfProduct(const fb::Kernel &kernel, const fb::Product &product);
std::string problemOfMatrices(const fb::Kernel &kernel, const fb::Product &product);
/// Throws Error when the image of `imageBytes` does not hold what an artifact for a GPU says.
void verifyGpuImage(const std::string &file, const fb::Gpu &gpu, uint64_t imageBytes);

/// [offset, offset + bytes) lies in [0, limit).
inline bool isInside(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

/// FlatBuffers' verifier looks at the place of a vector's length, not at that of its elements,
/// which may be of 8 bytes.
template <typename T>
bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

/// The product of a shape; false when it overflows or is not aligned.
bool elementsOf(const flatbuffers::Vector<uint64_t> *shape, uint64_t &elements);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_VERIFIER_H
