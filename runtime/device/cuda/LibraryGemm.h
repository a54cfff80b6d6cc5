//===- LibraryGemm.h - Matrix products of a library -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Phases that are a Product are calls of cuBLASLt. Its matrices are column by column and ours row
// by row, so it is asked for the transposed result: the transposed right factor times the
// transposed left one, each of which is the same memory read the other way.
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

/// Whether a library computes some of an artifact's products.
bool hasProducts(const fb::Manifest &manifest);

/// cuBLASLt on one device, and the algorithms that it has chosen for the products of an artifact:
/// each is asked for once.
class LibraryGemmPlans {
public:
  /// For the device whose context is current. Throws Error when there is no library, or it has no
  /// algorithm for a product.
  explicit LibraryGemmPlans(const Artifact &artifact);
  LibraryGemmPlans(const LibraryGemmPlans &) = delete;
  LibraryGemmPlans &operator=(const LibraryGemmPlans &) = delete;

  const CublasLt library;
  LtHandle getHandle() const { return handle.value; }
  const LtAlgorithm &algorithmOf(const fb::Phase &phase) const { return *byPhase.at(&phase); }

private:
  void plan(const fb::Kernel &kernel, const fb::Phase &phase);

  /// Ends with the library's, also when a product of the constructor is none.
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
  std::map<std::vector<uint64_t>, LtAlgorithm> algorithms; // by all that a call is
  std::unordered_map<const fb::Phase *, const LtAlgorithm *> byPhase;
};

/// Of one rank, since a call's descriptors hold addresses.
class LibraryGemm {
public:
  struct Call; // as the library is told of it
  LibraryGemm(std::shared_ptr<const LibraryGemmPlans> plans, const Artifact &artifact);
  ~LibraryGemm();

  /// Begins a product on a stream of the device. `bindings` are the kernel's, with its scratch
  /// after them.
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings,
              CudaStream stream);

private:
  std::shared_ptr<const LibraryGemmPlans> plans;
  std::unordered_map<const fb::Phase *, std::unique_ptr<Call>> calls;
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_LIBRARYGEMM_H
