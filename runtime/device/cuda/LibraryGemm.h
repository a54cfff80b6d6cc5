//===- LibraryGemm.h - Matrix products by cuBLASLt --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Phases with a Product are calls of cuBLASLt. The library's matrices are column-major and the
// artifact's are row-major. So the library computes the transposed result: the transposed right
// factor times the transposed left factor. A transposed matrix is the same memory, read in the
// other order.
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

/// Returns true if the manifest has products for the library.
bool hasProducts(const fb::Manifest &manifest);

/// cuBLASLt on one device, with the algorithms chosen for an artifact's products. Equal products
/// share one query of the library.
class LibraryGemmPlans {
public:
  /// Uses the device whose context is current. Throws Error if there is no library, or if a product
  /// has no algorithm.
  explicit LibraryGemmPlans(const Artifact &artifact);
  LibraryGemmPlans(const LibraryGemmPlans &) = delete;
  LibraryGemmPlans &operator=(const LibraryGemmPlans &) = delete;

  const CublasLt library;
  LtHandle getHandle() const { return handle.value; }
  const LtAlgorithm &algorithmOf(const fb::Phase &phase) const { return *byPhase.at(&phase); }

private:
  void plan(const fb::Kernel &kernel, const fb::Phase &phase);

  /// Destroys the library's handle, also if the constructor throws.
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
  std::map<std::vector<uint64_t>, LtAlgorithm> algorithms; // by the properties of a product
  std::unordered_map<const fb::Phase *, const LtAlgorithm *> byPhase;
};

/// The library products of one rank. Ranks do not share descriptors, because descriptors hold
/// addresses.
class LibraryGemm {
public:
  struct Call; // descriptors of a product
  LibraryGemm(std::shared_ptr<const LibraryGemmPlans> plans, const Artifact &artifact);
  ~LibraryGemm();

  /// Enqueues a product on a stream of the device. `bindings` has the addresses of the kernel's
  /// buffers, then of its workspace.
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings,
              CudaStream stream);

private:
  std::shared_ptr<const LibraryGemmPlans> plans;
  std::unordered_map<const fb::Phase *, std::unique_ptr<Call>> calls;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_LIBRARYGEMM_H
