//===- CudaPhysicalDevice.h - A GPU with an artifact's code -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Contains the parts that all ranks on a GPU share: the context, the code of the artifact, and the
// kernels of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_CUDA_CUDAPHYSICALDEVICE_H
#define FSDPRT_DEVICE_CUDA_CUDAPHYSICALDEVICE_H

#include "artifact/Artifact.h"
#include "device/cuda/CudaSums.h"
#include "device/cuda/LibraryGemm.h"
#include <atomic>
#include <memory>
#include <unordered_map>

namespace fsdprt {

class CudaPhysicalDevice {
public:
  /// Memory that the ranks on this GPU need: `ranks` arenas of `bytes` bytes each.
  struct Arenas {
    uint32_t ranks;
    uint64_t bytes;
    std::string text() const;
  };
  /// Opens the GPU. Throws Error if this GPU cannot run the code of the artifact.
  CudaPhysicalDevice(const CudaDriver &cuda, const Artifact &artifact, int ordinal, Arenas arenas);
  ~CudaPhysicalDevice();
  CudaPhysicalDevice(const CudaPhysicalDevice &) = delete;
  CudaPhysicalDevice &operator=(const CudaPhysicalDevice &) = delete;

  /// If the GPU can run the machine code of the artifact, loads this code. Otherwise lets the
  /// driver compile the PTX of the artifact. Sets the limit of dynamic shared memory for each
  /// kernel that needs more than the default.
  void load();
  /// Throws Error if the free memory of the GPU is too small for the arenas.
  void checkMemory() const;
  /// Returns the number of bytes in use on the GPU. Does not count the arenas reported to
  /// countArena().
  uint64_t bytesBeside() const;
  void countArena(int64_t bytes) { arenaBytes += bytes; }

  void use() const { cuda.contextSetCurrent(context); }
  CudaContext getContext() const { return context; }
  int getOrdinal() const { return ordinal; }
  CudaFunction entry(const fb::Phase &phase) const { return entries.at(&phase); }
  const CudaSums &getSums() const { return *sums; }
  /// Creates an object that launches the products of one rank with cuBLASLt. Returns null if
  /// cuBLASLt computes no products of the artifact.
  std::unique_ptr<LibraryGemm> makeLibraryGemm() const {
    return plans ? std::make_unique<LibraryGemm>(plans, artifact) : nullptr;
  }

  const CudaDriver &cuda;
  static constexpr unsigned mostMaps = 8;

private:
  void checkCapability() const;
  int attribute(int number) const;
  std::string name() const;
  void loadAll();
  void loadModule();
  [[noreturn]] void explain(const CudaFailure &failure) const;
  void findEntry(const fb::Phase &phase);

  const Artifact &artifact;
  int device = 0, ordinal;
  const Arenas arenas;
  CudaContext context = nullptr;
  CudaModule module = nullptr;
  std::unique_ptr<CudaSums> sums;
  std::unordered_map<const fb::Phase *, CudaFunction> entries;
  std::shared_ptr<const LibraryGemmPlans> plans;
  std::atomic<int64_t> arenaBytes{0};
};

} // namespace fsdprt

#endif // FSDPRT_DEVICE_CUDA_CUDAPHYSICALDEVICE_H
