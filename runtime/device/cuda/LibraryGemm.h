//===- LibraryGemm.h - Matrix products by cuBLASLt --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If a kernel has a Product, cuBLASLt computes its phase. The matrices of cuBLASLt are
// column-major, and those of the artifact are row-major. A row-major matrix and its column-major
// transpose have equal bytes in memory. cuBLASLt therefore computes the transposed result: the
// transposed right factor times the transposed left factor.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_LIBRARYGEMM_H
#define FSDPRT_DEVICE_CUDA_LIBRARYGEMM_H

#include "artifact/Artifact.h"
#include "device/cuda/CublasLt.h"
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fsdprt {

/// Returns true if kernels of the manifest have products that cuBLASLt computes.
bool hasProducts(const fb::Manifest &manifest);

/// Algorithms of cuBLASLt on one device for all products of an artifact. Products with equal
/// properties have the same algorithm.
class LibraryGemmPlans {
public:
  /// Uses the current context. Throws Error if cuBLASLt is missing or lacks an algorithm.
  explicit LibraryGemmPlans(const Artifact &artifact);
  LibraryGemmPlans(const LibraryGemmPlans &) = delete;
  LibraryGemmPlans &operator=(const LibraryGemmPlans &) = delete;

  const CublasLt library;
  LtHandle getHandle() const { return handle.value; }
  const LtAlgorithm &algorithmOf(const fb::Phase &phase) const { return *byPhase.at(&phase); }

private:
  void plan(const fb::Kernel &kernel, const fb::Phase &phase);

  /// Owns the cuBLASLt handle, which is destroyed even if the constructor of LibraryGemmPlans
  /// throws.
  struct Handle {
    explicit Handle(const CublasLt &library) : library(library) {}
    ~Handle() {
      if (value)
        library.destroy(value);
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;

    const CublasLt &library;
    LtHandle value = nullptr;
  };

  const Artifact &artifact;
  Handle handle{library};
  std::map<std::vector<uint64_t>, LtAlgorithm> algorithms; ///< key: properties of a product
  std::unordered_map<const fb::Phase *, const LtAlgorithm *> byPhase;
};

/// The products of one rank. Ranks do not share descriptors, because descriptors contain addresses.
class LibraryGemm {
public:
  struct Call;
  LibraryGemm(std::shared_ptr<const LibraryGemmPlans> plans, const Artifact &artifact);
  ~LibraryGemm();

  /// Enqueues a product on a stream of the device. `bindings` has the addresses of the kernel's
  /// buffers, and then of its workspace.
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings,
              CudaStream stream);

private:
  std::shared_ptr<const LibraryGemmPlans> plans;
  std::unordered_map<const fb::Phase *, std::unique_ptr<Call>> calls;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_LIBRARYGEMM_H
