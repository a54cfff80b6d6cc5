//===- CudaGpu.cpp - NVIDIA's GPUs ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the host reads and writes goes through a buffer, piece by piece, on the compute stream, so
// that it is behind what was launched.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaGpu.h"
#include "core/Error.h"
#include "device/cuda/CudaDevice.h"
#include "device/cuda/CudaHeartbeat.h"
#include "device/cuda/CudaTimeline.h"
#include <algorithm>
#include <array>

using namespace fsdprt;

namespace {
constexpr uint64_t stagingBytes = uint64_t(4) << 20;

struct alignas(64) TensorMapBytes {
  std::array<std::byte, 128> bytes;
};

CudaPointer addressOf(const void *pointer) { return reinterpret_cast<CudaPointer>(pointer); }

class CudaGpu : public Gpu, public ArenaSource {
public:
  CudaGpu(std::shared_ptr<CudaDriver> driver, std::shared_ptr<CudaDevice> device,
          uint32_t numCopies);
  ~CudaGpu() override;

  ArenaSource *arenaSource() override { return this; }
  void attach(const Arena &) override {}
  bool isShared() const override { return false; }
  void read(void *hosts, const std::byte *from, uint64_t bytes) override;
  void write(std::byte *to, const void *hosts, uint64_t bytes) override;
  uint64_t bytesBeside() const override { return device->bytesBeside(); }
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) override;
  bool fill(std::byte *to, uint64_t bytes) override;
  bool copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  bool startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) override;
  void awaitCopy(uint32_t number) override;
  void finish(const std::function<void()> &idle) override { lanes.finish(idle); }
  void resetHeartbeat() override { heartbeats.begin(); }
  uint32_t heartbeat() const override { return heartbeats.read(); }
  std::string fault() const override;
  CudaSpan spanOfCopy(uint32_t number) const override { return spans[number]; }
  CudaQueue *queue() override { return &lanes; }

  std::byte *allocate(uint64_t bytes, Place place) override;
  void release(std::byte *memory, Place place) override;

private:
  void encode(const fb::TensorMap &table, void *const *bindings, TensorMapBytes &into) const;
  void move(CudaQueue::Lane lane, std::byte *to, const std::byte *from, uint64_t bytes) const;
  void awaitStaging() const {
    lanes.finish([] {});
  }

  std::shared_ptr<CudaDriver> driver; // outlives the device
  std::shared_ptr<CudaDevice> device;
  const CudaDriver &cuda;
  CudaQueue lanes;
  CudaHeartbeat heartbeats;
  std::byte *staging = nullptr;
  uint64_t arenaBytes = 0;
  CudaMark here;                                // where a copy beside others begins
  std::vector<std::unique_ptr<CudaMark>> moved; // by the number of such a copy
  std::vector<CudaSpan> spans;                  // likewise
  std::unique_ptr<LibraryGemm> libraryGemm;
};
} // namespace

CudaGpu::CudaGpu(std::shared_ptr<CudaDriver> givenDriver, std::shared_ptr<CudaDevice> on,
                 uint32_t numCopies)
    : driver(std::move(givenDriver)), device(std::move(on)), cuda(device->cuda),
      lanes(cuda, device->getOrdinal(), device->getContext(), &device->getSums()),
      heartbeats(lanes), here(lanes), spans(numCopies) {
  for (uint32_t i = 0; i < numCopies; ++i)
    moved.push_back(std::make_unique<CudaMark>(lanes));
  void *memory = nullptr;
  cuda.check(cuda.memHostAlloc(&memory, stagingBytes, cudaPortableMapped),
             "pin memory for what the host reads and writes on a GPU");
  staging = static_cast<std::byte *>(memory);
  libraryGemm = device->makeLibraryGemm();
}

CudaGpu::~CudaGpu() {
  device->use();
  libraryGemm.reset();
  cuda.memFreeHost(staging);
}

//===- Memory -------------------------------------------------------------===//

std::byte *CudaGpu::allocate(uint64_t bytes, Place place) {
  device->use();
  if (place == Place::host) {
    void *memory = nullptr;
    cuda.check(cuda.memHostAlloc(&memory, bytes, cudaPortableMapped),
               "pin memory of the host for what a rank offloads");
    std::memset(memory, 0, bytes);
    return static_cast<std::byte *>(memory);
  }
  CudaPointer memory = 0;
  cuda.check(cuda.memAlloc(&memory, bytes), "get memory for a rank's arena on a GPU");
  cuda.check(cuda.memsetAsync(memory, 0, bytes, lanes.stream(CudaQueue::compute)),
             "fill a rank's arena with zeros");
  arenaBytes = bytes;
  device->countArena(static_cast<int64_t>(bytes));
  return reinterpret_cast<std::byte *>(memory);
}

void CudaGpu::release(std::byte *memory, Place place) {
  device->use();
  if (place == Place::host) {
    cuda.memFreeHost(memory);
    return;
  }
  cuda.memFree(addressOf(memory));
  device->countArena(-static_cast<int64_t>(arenaBytes));
}

void CudaGpu::move(CudaQueue::Lane lane, std::byte *to, const std::byte *from,
                   uint64_t bytes) const {
  device->use();
  cuda.check(cuda.memcpyAsync(addressOf(to), addressOf(from), bytes, lanes.stream(lane)),
             "copy on a GPU");
}

void CudaGpu::read(void *hosts, const std::byte *from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += stagingBytes) {
    uint64_t part = std::min(stagingBytes, bytes - done);
    move(CudaQueue::compute, staging, from + done, part);
    awaitStaging();
    std::memcpy(static_cast<std::byte *>(hosts) + done, staging, part);
  }
}

void CudaGpu::write(std::byte *to, const void *hosts, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += stagingBytes) {
    uint64_t part = std::min(stagingBytes, bytes - done);
    std::memcpy(staging, static_cast<const std::byte *>(hosts) + done, part);
    move(CudaQueue::compute, to + done, staging, part);
    awaitStaging();
  }
}

bool CudaGpu::fill(std::byte *to, uint64_t bytes) {
  device->use();
  cuda.check(cuda.memsetAsync(addressOf(to), 0, bytes, lanes.stream(CudaQueue::compute)),
             "fill a range with zeros on a GPU");
  return true;
}

bool CudaGpu::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (to != from)
    move(CudaQueue::compute, to, from, bytes);
  return true;
}

bool CudaGpu::startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) {
  here.record(CudaQueue::compute);
  here.hold(lanes, CudaQueue::copies);
  spans[number].from = lanes.stamp(CudaQueue::copies);
  if (to != from)
    move(CudaQueue::copies, to, from, bytes);
  spans[number].to = lanes.stamp(CudaQueue::copies);
  moved[number]->record(CudaQueue::copies);
  return true;
}

void CudaGpu::awaitCopy(uint32_t number) { moved[number]->hold(lanes, CudaQueue::compute); }

//===- Launches -----------------------------------------------------------===//

void CudaGpu::encode(const fb::TensorMap &table, void *const *bindings,
                     TensorMapBytes &into) const {
  constexpr unsigned most = 5;
  std::array<uint64_t, most> sizes{}, strides{};
  std::array<uint32_t, most> box{}, steps{};
  unsigned rank = std::min<unsigned>(table.sizes()->size(), most);
  for (unsigned i = 0; i < rank; ++i) {
    sizes[i] = table.sizes()->Get(i);
    box[i] = table.box()->Get(i);
    steps[i] = 1;
    if (i > 0)
      strides[i - 1] = table.strides()->Get(i - 1);
  }
  auto *address = static_cast<std::byte *>(bindings[table.binding()]) + table.offset();
  cuda.check(cuda.tensorMapEncode(&into,
                                  table.dtype() == fb::DType::bf16 ? cudaTensorBf16 : cudaTensorF16,
                                  rank, address, sizes.data(), strides.data(), box.data(),
                                  steps.data(), 0, cudaSwizzle128, cudaPromote256, 0),
             "make a tensor map");
}

void CudaGpu::launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) {
  if (phase.product()) {
    device->use();
    libraryGemm->launch(kernel, phase, bindings, lanes.stream(CudaQueue::compute));
    return heartbeats.count();
  }
  const fb::Grid &grid = *phase.grid();
  TensorMapBytes maps[CudaDevice::mostMaps];
  std::array<void *, 1024> arguments;
  uint32_t count = 0, pointers = pointersOf(kernel), tables = grid.maps() ? grid.maps()->size() : 0;
  if (pointers + tables > arguments.size())
    failed("expected a kernel of at most %zu arguments, found %u", arguments.size(),
           pointers + tables);
  for (; count < pointers; ++count)
    arguments[count] = const_cast<void **>(&bindings[count]);
  for (uint32_t i = 0; i < tables; ++i) {
    encode(*grid.maps()->Get(i), bindings, maps[i]);
    arguments[count++] = &maps[i];
  }
  device->use();
  CudaResult result = cuda.launchKernel(
      device->entry(phase), static_cast<unsigned>(grid.blocks()), 1, 1,
      static_cast<unsigned>(grid.threads()), 1, 1, static_cast<unsigned>(grid.shared_bytes()),
      lanes.stream(CudaQueue::compute), arguments.data(), nullptr);
  if (result != cudaOk)
    failed("kernel '%s': cannot be launched: %s", printable(phase.symbol()->c_str()).c_str(),
           cuda.reason(result).c_str());
  heartbeats.count();
}

/// What has no end is no fault, and neither is what may not be asked while a graph is recorded.
std::string CudaGpu::fault() const {
  device->use();
  CudaResult result = cuda.streamQuery(lanes.stream(CudaQueue::compute));
  return result == cudaOk || result == cudaNotReady || result >= cudaCaptureUnsupported
             ? ""
             : cuda.reason(result);
}

CudaSpan Gpu::spanOfCopy(uint32_t) const { return {}; }

std::vector<std::unique_ptr<Gpu>> fsdprt::makeCudaGpus(const Artifact &artifact, uint32_t ranks,
                                                       uint64_t arenaBytes, uint32_t numCopies,
                                                       uint32_t firstDevice) {
  auto driver = std::make_shared<CudaDriver>("--device=cuda", CudaDriver::Use::kernels);
  uint32_t count = static_cast<uint32_t>(driver->devices()), used = std::min(ranks, count);
  std::vector<std::shared_ptr<CudaDevice>> devices;
  for (uint32_t i = 0; i < used; ++i)
    devices.push_back(std::make_shared<CudaDevice>(
        *driver, artifact, static_cast<int>((firstDevice + i) % count),
        CudaDevice::Arenas{ranks / used + (i < ranks % used), arenaBytes}));
  for (const auto &device : devices)
    device->load();
  std::vector<std::unique_ptr<Gpu>> gpus;
  for (uint32_t i = 0; i < ranks; ++i)
    gpus.push_back(std::make_unique<CudaGpu>(driver, devices[i % used], numCopies));
  for (const auto &device : devices)
    device->checkMemory();
  return gpus;
}
