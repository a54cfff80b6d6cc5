//===- Verifier.h - Rules for manifests -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The verifier of FlatBuffers checks that the manifest can be read. The verifier that this file
// declares checks that programs can be run: they access only their arenas, they end, and they
// launch kernels only with large enough bindings. The files Verify*.cpp list the rules (V1), (V2),
// ...
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

/// Selects the rules that the verifier checks. `all` selects all rules, so that a verified artifact
/// can be run. `form` selects only rules that make commands readable: for example, each object to
/// which a command refers must exist. The null device uses `form`, because it searches for faults
/// itself. With `form`, the verifier does not check (V5), (V6) and (V15), and does not check where
/// ranges lie in (V12), (V13), (V14), (V16) and (V19).
enum class Rules { all, form };

/// Limits the time of the checks to 2^28 steps plus 64 steps for each byte of the manifest. Without
/// a limit, the checks could take much longer, because a FlatBuffer may refer to one string or
/// vector many times.
class WorkLimit {
public:
  WorkLimit(const std::string &file, uint64_t manifestBytes)
      : file(file), manifestBytes(manifestBytes), left((uint64_t(1) << 28) + 64 * manifestBytes) {}

  /// Adds `steps` to the number of steps that the checks have taken. One step reads a byte of a
  /// name or compares two ranges. Throws Error if the total exceeds the limit.
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

/// Checks a manifest of `manifestBytes` bytes, including its programs, and returns its mesh.
/// `valuesBytes` is the size of the section of values in the file. Throws Error with the file, the
/// location, and the expected and found values.
Mesh verifyManifest(const std::string &file, const fb::Manifest &manifest, uint64_t manifestBytes,
                    uint64_t valuesBytes, Rules rules);

/// Checks the programs of a manifest. All other checks of verifyManifest() must have passed.
void verifyPrograms(const std::string &file, const fb::Manifest &manifest, const Mesh &mesh,
                    Rules rules, WorkLimit &work);

/// Returns true if two ranges A and B overlap in any iteration of a loop with `times` iterations. A
/// has `bytesA` bytes, and B has `bytesB` bytes. In the first iteration, A begins `distance` bytes
/// after B. Each further iteration adds `step` to the distance.
bool overlapInLoop(int64_t distance, int64_t step, uint64_t times, uint64_t bytesA,
                   uint64_t bytesB);

/// Alignment in bytes of the scratch memory of kernels on a GPU.
constexpr uint64_t gpuScratchAlignment = 256;

/// Returns the reason why a phase is invalid, or an empty text if the phase is valid
/// (VerifyGpu.cpp). If `isForGpu` is true, the phase must be a launch on a GPU or a product of
/// cuBLASLt. Otherwise it must be a function for a CPU.
std::string problemOfPhase(const fb::Kernel &kernel, const fb::Phase &phase, bool isForGpu);
/// Returns a text that describes a tensor map or a matrix outside of its binding. Returns an empty
/// text if all tensor maps and matrices lie in their bindings. problemOfPhase() must have returned
/// an empty text for the phase.
std::string problemOfPlaces(const fb::Kernel &kernel, const fb::Phase &phase);
/// problemOfProduct() returns a text with the reason why a cuBLASLt product is invalid.
/// problemOfMatrices() returns a text that describes a matrix outside of its binding. Both
/// functions return an empty text if they find no problem.
std::string problemOfProduct(const fb::Kernel &kernel, const fb::Product &product);
std::string problemOfMatrices(const fb::Kernel &kernel, const fb::Product &product);
/// Throws Error if the PTX or machine code that `gpu` describes does not lie in an image of
/// `imageBytes` bytes.
void verifyGpuImage(const std::string &file, const fb::Gpu &gpu, uint64_t imageBytes);

/// Returns true if [offset, offset + bytes) lies in [0, limit).
inline bool isInside(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

/// Returns true if the elements of a vector are aligned to 8 bytes. The verifier of FlatBuffers
/// checks only the alignment of the vector's length.
template <typename T>
bool isAligned(const flatbuffers::Vector<T> *vector) {
  return !vector || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

/// Sets `elements` to the product of the dimensions in `shape`. Returns false if the product
/// exceeds 2^48, or if the dimensions are not aligned to 8 bytes.
bool elementsOf(const flatbuffers::Vector<uint64_t> *shape, uint64_t &elements);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_VERIFIER_H
