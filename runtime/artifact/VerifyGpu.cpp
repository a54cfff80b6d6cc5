//===- VerifyGpu.cpp - Kernels for a GPU ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (V19) An artifact for a GPU contains the name of the chip. Each phase of a kernel is a launch or
//       a product (V21). The extent of a launch is its number of blocks, which is 1 to 2^31 - 1. A
//       block has 1 to 1024 threads and at most 227 KiB of shared memory. Clusters have at most 16
//       blocks. Each tensor map refers to a binding or to the scratch memory, and ends within the
//       size that the kernel requires for this binding or for the scratch memory. A map has 1 to 5
//       dimensions, boxes of 1 to 256 elements along each dimension, and an offset and strides that
//       are multiples of 16 bytes. The numbers of a cost are from 0 to 1e18, and its balance is
//       above 0 and at most 1. In an artifact for a CPU, no phase is a launch or has a cost.
// (V20) The image contains the PTX and the machine code. Machine code is optional.
//
//===----------------------------------------------------------------------===//

#include "artifact/Verifier.h"
#include "core/Error.h"
#include <optional>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t maxBlocks = (uint64_t(1) << 31) - 1, maxThreads = 1024,
                          maxShared = 227 * 1024, maxRank = 5, maxBox = 256, maxMaps = 16,
                          maxCluster = 16, mapAlignment = 16;
static constexpr double maxCost = 1e18;

template <typename T>
static uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// Returns the reason why a tensor map is invalid, or an empty text if the map is valid.
static std::string problemOf(const fb::TensorMap &map, uint64_t bindings) {
  uint32_t rank = count(map.sizes());
  if (map.binding() >= bindings)
    return format("expected one of %llu bindings and scratch, found number %u", (ull)bindings,
                  map.binding());
  if (map.dtype() != fb::DType::bf16 && map.dtype() != fb::DType::f16 &&
      map.dtype() != fb::DType::f32)
    return "expected elements of bf16, f16 or f32";
  if (rank < 1 || rank > maxRank || count(map.strides()) != rank - 1 || count(map.box()) != rank)
    return format("expected sizes and box of 1 to 5 dimensions, and strides of all but the first, "
                  "found %u, %u and %u",
                  rank, count(map.box()), count(map.strides()));
  if (!isAligned(map.sizes()) || !isAligned(map.strides()))
    return "its sizes are not aligned";
  for (uint32_t box : *map.box())
    if (box < 1 || box > maxBox)
      return format("expected boxes of 1 to %llu elements, found %u", (ull)maxBox, box);
  return "";
}

/// Returns the error of a cost, or an empty text.
static std::string problemOf(const fb::Cost &cost) {
  for (double number : {cost.clocks(), cost.tensor(), cost.issue(), cost.special(), cost.shared(),
                        cost.cache(), cost.bytes()})
    if (!(number >= 0 && number <= maxCost))
      return format("expected clocks and bytes of a cost from 0 to 1e18, found %g", number);
  if (!(cost.balance() > 0 && cost.balance() <= 1))
    return format("expected the balance of a cost above 0 and at most 1, found %g", cost.balance());
  return "";
}

std::string fsdprt::problemOfPhase(const fb::Kernel &kernel, const fb::Phase &phase,
                                   bool isForGpu) {
  const fb::Grid *grid = phase.grid();
  if (!isForGpu && phase.product())
    return "expected a function of a CPU, found a product of a library for GPUs";
  if (!isForGpu && phase.cost())
    return "expected a function of a CPU, found the cost of a launch on a GPU";
  if (!isForGpu)
    return grid ? "expected a function of a CPU, found a launch on a GPU" : "";
  if (std::string problem = phase.cost() ? problemOf(*phase.cost()) : ""; !problem.empty())
    return problem;
  if (phase.product())
    return grid ? "expected a launch or a product of a library, found both"
                : problemOfProduct(kernel, *phase.product());
  if (!grid)
    return "expected a launch on a GPU, found a function of a CPU";
  if (grid->blocks() < 1 || grid->blocks() > maxBlocks || grid->blocks() != phase.extent())
    return format("expected 1 to 2^31 - 1 blocks, as many as its extent of %llu, found %u",
                  (ull)phase.extent(), grid->blocks());
  if (grid->threads() < 1 || grid->threads() > maxThreads || grid->shared_bytes() > maxShared)
    return format(
        "expected 1 to %llu threads and at most %llu bytes of shared memory, found %u and %llu",
        (ull)maxThreads, (ull)maxShared, grid->threads(), (ull)grid->shared_bytes());
  if (grid->cluster() < 1 || grid->cluster() > maxCluster || grid->blocks() % grid->cluster() != 0)
    return format("expected clusters of 1 to %llu blocks that divide %u, found %u", (ull)maxCluster,
                  grid->blocks(), grid->cluster());
  if (count(grid->maps()) > maxMaps)
    return format("expected at most %llu tensor maps, found %u", (ull)maxMaps, count(grid->maps()));
  for (uint32_t i = 0; i < count(grid->maps()); ++i) {
    std::string problem =
        problemOf(*grid->maps()->Get(i),
                  count(kernel.binding_bytes()) + uint64_t(kernel.shared_bytes() != 0));
    if (!problem.empty())
      return format("tensor map %u: ", i) + problem;
  }
  return "";
}

/// Returns the end of the last element of a tensor map, in bytes from the beginning of the map's
/// binding. Returns nullopt if the computation overflows.
static std::optional<uint64_t> endOf(const fb::TensorMap &map) {
  uint64_t end = map.offset(), row;
  for (uint32_t i = 0; i < map.sizes()->size(); ++i) {
    uint64_t size = map.sizes()->Get(i);
    if (size == 0)
      return map.offset();
    uint64_t steps = i == 0 ? size : size - 1, step = i > 0 ? map.strides()->Get(i - 1)
                                                      : map.dtype() == fb::DType::f32 ? 4
                                                                                      : 2;
    if (__builtin_mul_overflow(steps, step, &row) || __builtin_add_overflow(end, row, &end))
      return std::nullopt;
  }
  return end;
}

std::string fsdprt::problemOfPlaces(const fb::Kernel &kernel, const fb::Phase &phase) {
  if (phase.product())
    return problemOfMatrices(kernel, *phase.product());
  const auto *maps = phase.grid() ? phase.grid()->maps() : nullptr;
  for (uint32_t i = 0; i < count(maps); ++i) {
    const fb::TensorMap &map = *maps->Get(i);
    bool isScratch = map.binding() == count(kernel.binding_bytes());
    uint64_t limit = isScratch ? kernel.shared_bytes() : kernel.binding_bytes()->Get(map.binding());
    std::optional<uint64_t> end = endOf(map);
    if (!end || *end > limit)
      return format("tensor map %u: expected an end within the %llu bytes of %s, found %s", i,
                    (ull)limit, isScratch ? "scratch" : format("binding %u", map.binding()).c_str(),
                    end ? format("%llu", (ull)*end).c_str() : "more than 2^64");
    bool isOnGrid = map.offset() % mapAlignment == 0;
    for (uint32_t d = 0; d < count(map.strides()); ++d)
      isOnGrid &= map.strides()->Get(d) % mapAlignment == 0;
    if (!isOnGrid)
      return format("tensor map %u: expected its offset and strides to be multiples of %llu bytes",
                    i, (ull)mapAlignment);
  }
  return "";
}

void fsdprt::verifyGpuImage(const std::string &file, const fb::Gpu &gpu, uint64_t imageBytes) {
  const char *name = file.c_str();
  if (!gpu.chip() || gpu.chip()->size() == 0)
    badInput("%s: expected the name of the GPU's chip, found none", name);
  // An artifact that was compiled with --no-code has no image.
  if (imageBytes == 0)
    return;
  if (gpu.ptx_bytes() == 0 || !isInside(0, gpu.ptx_bytes(), imageBytes))
    badInput("%s: expected PTX within the image's %llu bytes, found %llu bytes of it", name,
             (ull)imageBytes, (ull)gpu.ptx_bytes());
  if (gpu.cubin_bytes() != 0 && (gpu.cubin_offset() < gpu.ptx_bytes() ||
                                 !isInside(gpu.cubin_offset(), gpu.cubin_bytes(), imageBytes)))
    badInput("%s: expected machine code after the PTX within the image's %llu bytes, found [%llu, "
             "+%llu)",
             name, (ull)imageBytes, (ull)gpu.cubin_offset(), (ull)gpu.cubin_bytes());
}
