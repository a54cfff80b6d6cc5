//===- CudaDevice.cpp - NVIDIA GPUs -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host reads and writes device memory in chunks through the staging buffer. These copies are
// enqueued on the compute stream, so that they run after all earlier launches.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaDevice.h"
#include "artifact/Arenas.h"
#include "core/Error.h"
#include "device/cuda/CudaHeartbeat.h"
#include "device/cuda/CudaPhysicalDevice.h"
#include "device/cuda/CudaRecording.h"
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

class CudaDevice : public Device, public ArenaSource {
public:
  CudaDevice(std::shared_ptr<CudaDriver> driver, std::shared_ptr<CudaPhysicalDevice> device,
             const Artifact &artifact, const DeviceOptions &options);
  ~CudaDevice() override;

  Arena allocate(const fb::Layout &layout, Arena::Kind kind) override;
  void attach(const Arena &, WorkerPool &) override {}
  void detach() override {}
  bool isHostVisible() const override { return false; }
  void read(void *hosts, const std::byte *from, uint64_t bytes) override;
  void write(std::byte *to, const void *hosts, uint64_t bytes) override;
  uint64_t bytesBeside() const override { return device->bytesBeside(); }
  void launch(uint32_t kernel, uint32_t phase, void *const *bindings) override;
  void fill(std::byte *to, uint64_t bytes) override;
  void copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  void startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) override;
  void awaitCopy(uint32_t number) override;
  DeviceSpan spanOfCopy(uint32_t number) const override { return spans[number]; }
  void finish(const std::function<void()> &idle) override { lanes.finish(idle); }
  bool isAsynchronous() const override { return true; }
  int ordinal() const override { return lanes.getDevice(); }
  CudaQueue *queue() override { return &lanes; }
  std::unique_ptr<DeviceTimeline> makeTimeline(uint64_t stamps) override;
  std::unique_ptr<DeviceGraph> makeGraph(const std::vector<Device *> &devices) override;
  void resetHeartbeat() override { heartbeats.begin(); }
  uint32_t heartbeat() const override { return heartbeats.read(); }
  HeartbeatInterval heartbeatInterval() const override {
    return {CudaHeartbeat::launches, CudaHeartbeat::numbers};
  }
  std::string fault() const override;

  std::byte *allocate(uint64_t bytes, Place place) override;
  void release(std::byte *memory, Place place) override;

private:
  void encode(const fb::TensorMap &table, void *const *bindings, TensorMapBytes &into) const;
  void move(CudaQueue::Lane lane, std::byte *to, const std::byte *from, uint64_t bytes) const;
  void awaitStaging() const {
    lanes.finish([] {});
  }

  void launchEntry(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings);

  const Artifact &artifact;
  std::shared_ptr<CudaDriver> driver; ///< owner of `cuda`
  std::shared_ptr<CudaPhysicalDevice> device;
  const CudaDriver &cuda;
  CudaQueue lanes;
  CudaHeartbeat heartbeats;
  std::byte *staging = nullptr;
  uint64_t arenaBytes = 0;
  DeviceAllocator *allocator; ///< of the arena; null for the driver
  /// mark on the compute stream before an asynchronous copy; the stream of the copy waits for it
  CudaMark here;
  std::vector<std::unique_ptr<CudaMark>> moved; ///< for each copy: the mark that follows the copy
  std::vector<DeviceSpan> spans;                ///< for each copy: the time stamps of the copy
  std::unique_ptr<LibraryGemm> libraryGemm;
};
} // namespace

CudaDevice::CudaDevice(std::shared_ptr<CudaDriver> givenDriver,
                       std::shared_ptr<CudaPhysicalDevice> on, const Artifact &artifact,
                       const DeviceOptions &options)
    : artifact(artifact), driver(std::move(givenDriver)), device(std::move(on)), cuda(device->cuda),
      lanes(cuda, device->getOrdinal(), device->getContext(), &device->getSums()),
      heartbeats(lanes), allocator(options.allocator), here(lanes), spans(options.numCopies) {
  for (uint32_t i = 0; i < options.numCopies; ++i)
    moved.push_back(std::make_unique<CudaMark>(lanes));
  void *memory = nullptr;
  cuda.check(cuda.memHostAlloc(&memory, stagingBytes, cudaPortableMapped),
             "pin a staging buffer for reads and writes of GPU memory");
  staging = static_cast<std::byte *>(memory);
  libraryGemm = device->makeLibraryGemm();
}

CudaDevice::~CudaDevice() {
  device->use();
  libraryGemm.reset();
  cuda.memFreeHost(staging);
}

Arena CudaDevice::allocate(const fb::Layout &layout, Arena::Kind) {
  return Arena({layout.arena_bytes(), hostBegin(layout), layout.host_bytes()}, *this);
}

std::byte *CudaDevice::allocate(uint64_t bytes, Place place) {
  device->use();
  if (place == Place::host) {
    void *memory = nullptr;
    cuda.check(cuda.memHostAlloc(&memory, bytes, cudaPortableMapped),
               "pin host memory for a rank's offloaded buffers");
    std::memset(memory, 0, bytes);
    return static_cast<std::byte *>(memory);
  }
  CudaPointer memory = allocator ? addressOf(allocator->allocate(bytes)) : 0;
  if (!memory) {
    allocator = nullptr;
    cuda.check(cuda.memAlloc(&memory, bytes), "allocate memory for a rank's arena on a GPU");
  }
  cuda.check(cuda.memsetAsync(memory, 0, bytes, lanes.stream(CudaQueue::compute)),
             "fill a rank's arena with zeros");
  arenaBytes = bytes;
  device->countArena(static_cast<int64_t>(bytes));
  return reinterpret_cast<std::byte *>(memory);
}

void CudaDevice::release(std::byte *memory, Place place) {
  device->use();
  if (place == Place::host) {
    cuda.memFreeHost(memory);
    return;
  }
  if (allocator)
    allocator->release(memory);
  else
    cuda.memFree(addressOf(memory));
  device->countArena(-static_cast<int64_t>(arenaBytes));
}

void CudaDevice::move(CudaQueue::Lane lane, std::byte *to, const std::byte *from,
                      uint64_t bytes) const {
  device->use();
  cuda.check(cuda.memcpyAsync(addressOf(to), addressOf(from), bytes, lanes.stream(lane)),
             "copy on a GPU");
}

void CudaDevice::read(void *hosts, const std::byte *from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += stagingBytes) {
    uint64_t part = std::min(stagingBytes, bytes - done);
    move(CudaQueue::compute, staging, from + done, part);
    awaitStaging();
    std::memcpy(static_cast<std::byte *>(hosts) + done, staging, part);
  }
}

void CudaDevice::write(std::byte *to, const void *hosts, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += stagingBytes) {
    uint64_t part = std::min(stagingBytes, bytes - done);
    std::memcpy(staging, static_cast<const std::byte *>(hosts) + done, part);
    move(CudaQueue::compute, to + done, staging, part);
    awaitStaging();
  }
}

void CudaDevice::fill(std::byte *to, uint64_t bytes) {
  device->use();
  cuda.check(cuda.memsetAsync(addressOf(to), 0, bytes, lanes.stream(CudaQueue::compute)),
             "fill a range with zeros on a GPU");
}

void CudaDevice::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (to != from)
    move(CudaQueue::compute, to, from, bytes);
}

void CudaDevice::startCopy(uint32_t number, std::byte *to, const std::byte *from, uint64_t bytes) {
  here.record(CudaQueue::compute);
  here.hold(lanes, CudaQueue::copies);
  spans[number].from = lanes.stamp(CudaQueue::copies);
  if (to != from)
    move(CudaQueue::copies, to, from, bytes);
  spans[number].to = lanes.stamp(CudaQueue::copies);
  moved[number]->record(CudaQueue::copies);
}

void CudaDevice::awaitCopy(uint32_t number) { moved[number]->hold(lanes, CudaQueue::compute); }

static int typeOf(const fb::TensorMap &table) {
  return table.dtype() == fb::DType::bf16  ? cudaTensorBf16
         : table.dtype() == fb::DType::f16 ? cudaTensorF16
                                           : cudaTensorTF32;
}

void CudaDevice::encode(const fb::TensorMap &table, void *const *bindings,
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
  cuda.check(cuda.tensorMapEncode(&into, typeOf(table), rank, address, sizes.data(), strides.data(),
                                  box.data(), steps.data(), 0, cudaSwizzle128, cudaPromote256, 0),
             "make a tensor map");
}

void CudaDevice::launch(uint32_t number, uint32_t index, void *const *bindings) {
  const fb::Kernel &kernel = *artifact.manifest().kernels()->Get(number);
  const fb::Phase &phase = *kernel.phases()->Get(index);
  if (phase.product()) {
    device->use();
    libraryGemm->launch(kernel, phase, bindings, lanes.stream(CudaQueue::compute));
  } else {
    launchEntry(kernel, phase, bindings);
  }
  heartbeats.count();
}

void CudaDevice::launchEntry(const fb::Kernel &kernel, const fb::Phase &phase,
                             void *const *bindings) {
  const fb::Grid &grid = *phase.grid();
  TensorMapBytes maps[CudaPhysicalDevice::mostMaps];
  std::array<void *, 1024> arguments;
  uint32_t count = 0, pointers = pointersOf(kernel), tables = grid.maps() ? grid.maps()->size() : 0;
  if (pointers + tables > arguments.size())
    failed("expected a kernel with at most %zu arguments, found %u", arguments.size(),
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
    failed("kernel '%s': cannot launch: %s", printable(phase.symbol()->c_str()).c_str(),
           cuda.reason(result).c_str());
}

/// If the compute stream has an error, returns a description of it. Returns an empty text if work
/// is unfinished. Also returns an empty text if the error belongs to a stream capture, because
/// later calls do not fail after such an error.
std::string CudaDevice::fault() const {
  device->use();
  CudaResult result = cuda.streamQuery(lanes.stream(CudaQueue::compute));
  return result == cudaOk || result == cudaNotReady || result >= cudaCaptureUnsupported
             ? ""
             : cuda.reason(result);
}

std::unique_ptr<DeviceTimeline> CudaDevice::makeTimeline(uint64_t stamps) {
  auto timeline = std::make_unique<CudaTimeline>(lanes, stamps);
  lanes.setTimeline(timeline.get());
  return timeline;
}

std::unique_ptr<DeviceGraph> CudaDevice::makeGraph(const std::vector<Device *> &devices) {
  std::vector<const CudaQueue *> queues;
  for (Device *each : devices)
    queues.push_back(each->queue());
  return std::make_unique<CudaRecording>(std::move(queues));
}

std::vector<std::unique_ptr<Device>> fsdprt::makeCudaDevices(const Artifact &artifact,
                                                             const fb::Layout &layout,
                                                             const DeviceOptions &options) {
  auto driver = std::make_shared<CudaDriver>("--device=cuda", CudaDriver::Use::kernels);
  uint32_t count = static_cast<uint32_t>(driver->devices()), used = std::min(options.ranks, count);
  std::vector<std::shared_ptr<CudaPhysicalDevice>> physical;
  for (uint32_t i = 0; i < used; ++i)
    physical.push_back(std::make_shared<CudaPhysicalDevice>(
        *driver, artifact, static_cast<int>((options.firstDevice + i) % count),
        CudaPhysicalDevice::Arenas{options.ranks / used + (i < options.ranks % used),
                                   layout.arena_bytes()}));
  for (const auto &each : physical)
    each->load();
  std::vector<std::unique_ptr<Device>> devices;
  for (uint32_t i = 0; i < options.ranks; ++i)
    devices.push_back(std::make_unique<CudaDevice>(driver, physical[i % used], artifact, options));
  for (const auto &each : physical)
    each->checkMemory();
  return devices;
}
