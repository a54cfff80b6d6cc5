//===- Verifier.h - Rules for manifests -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// FlatBuffers' verifier checks that the manifest can be read. This verifier checks that the
// manifest can be run: programs access only their arena, end, and call only kernels whose bindings
// are large enough. Rules are numbered V1, V2, ... in the Verify*.cpp files.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_VERIFIER_H
#define FSDPRT_ARTIFACT_VERIFIER_H

#include "artifact/Arenas.h"
#include "artifact/Mesh.h"
#include "core/Error.h"
#include "fsdprt/artifact_generated.h"
#include <string>
#include <vector>

namespace fsdprt {

/// Rules to check. `all` checks everything, to run the artifact. `form` checks that commands can be
/// read and refer to existing objects; the null device then walks the commands and finds faults
/// itself. `form` omits (V5), (V6), (V15), and the rules of (V12), (V13), (V14), (V16) and (V19) on
/// where ranges lie.
enum class Rules { all, form };

/// Limits the work of the checks to a multiple of the manifest's size. A FlatBuffer may refer to
/// one string or vector from many places, so reading each reference takes work without limit.
class WorkLimit {
public:
  WorkLimit(const std::string &file, uint64_t manifestBytes)
      : file(file), manifestBytes(manifestBytes), left((uint64_t(1) << 28) + 64 * manifestBytes) {}

  /// Throws Error if more than the limit is spent. A step reads a byte of a name, or compares two
  /// ranges.
  void spend(uint64_t steps) {
    if (steps > left)
      badInput("%s: manifest: checking it takes more than %llu steps for its %llu bytes: too many "
               "transfers are in flight at once, or its parts are referred to too often",
               file.c_str(), static_cast<unsigned long long>((1 << 28) + 64 * manifestBytes),
               static_cast<unsigned long long>(manifestBytes));
    left -= steps;
  }

private:
  const std::string &file;
  uint64_t manifestBytes, left;
};

/// Checks a manifest of `manifestBytes`, including its programs, and returns its mesh.
/// `valuesBytes` is the size of the file's section of values. Throws Error with file, location,
/// expected and found value.
Mesh verifyManifest(const std::string &file, const fb::Manifest &manifest, uint64_t manifestBytes,
                    uint64_t valuesBytes, Rules rules);

/// Checks programs. verifyManifest calls it after all other checks.
void verifyPrograms(const std::string &file, const fb::Manifest &manifest, const Mesh &mesh,
                    Rules rules, WorkLimit &work);

/// Returns true if two ranges overlap in an iteration of a loop that runs `times` times. In the
/// first iteration, range A of `bytesA` begins `distance` bytes after range B of `bytesB`; each
/// iteration adds `step` to the distance.
bool overlapInLoop(int64_t distance, int64_t step, uint64_t times, uint64_t bytesA,
                   uint64_t bytesB);

/// Alignment in bytes of the scratch of kernels on a GPU.
constexpr uint64_t gpuScratchAlignment = 256;

/// Returns the error of a phase as a launch on a GPU or as a function of a CPU, or an empty text
/// (VerifyGpu.cpp).
std::string problemOfPhase(const fb::Kernel &kernel, const fb::Phase &phase, bool isForGpu);
/// Returns an error if a tensor map or matrix of a well-formed phase does not lie in its binding,
/// else an empty text.
std::string problemOfPlaces(const fb::Kernel &kernel, const fb::Phase &phase);
/// Return errors of a library product: of its form, and of matrices that do not lie in their
/// bindings (VerifyLibraryGemm.cpp).
std::string problemOfProduct(const fb::Kernel &kernel, const fb::Product &product);
std::string problemOfMatrices(const fb::Kernel &kernel, const fb::Product &product);
/// Throws Error if the image of `imageBytes` lacks the PTX or machine code that `gpu` declares.
void verifyGpuImage(const std::string &file, const fb::Gpu &gpu, uint64_t imageBytes);

/// Returns true if [offset, offset + bytes) lies in [0, limit).
inline bool isInside(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

/// Returns true if the elements of a vector are aligned to 8 bytes. FlatBuffers' verifier checks
/// only the alignment of the vector's length.
template <typename T>
bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

/// Computes the product of a shape. Returns false if the product exceeds 2^48 or the vector `shape`
/// is not aligned.
bool elementsOf(const flatbuffers::Vector<uint64_t> *shape, uint64_t &elements);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_VERIFIER_H
