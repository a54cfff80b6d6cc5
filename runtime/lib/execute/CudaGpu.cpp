//===- CudaGpu.cpp - NVIDIA's GPUs ------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A device is looked at first: its capability, its free memory. Then its code is loaded once, for all of its ranks: machine code
// where it fits, else PTX, which the driver compiles. Entries are found and given their shared memory then, so
// that a launch is a look into a table, its tensor maps and one call.
//
// Not done: collectives by kernels, graphs, copies on streams of their own; with several ranks pages go back and forth.
//
//===----------------------------------------------------------------------===//

#include "execute/CudaGpu.h"
#include "core/Error.h"
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unordered_map>

using namespace fsdprt;

using ull = unsigned long long;

namespace {
constexpr unsigned mostMaps = 8;
constexpr uint64_t sharedWithoutAsking = 48 << 10;
/// CU_TENSOR_MAP_DATA_TYPE_*, _SWIZZLE_128B, _L2_PROMOTION_L2_256B.
constexpr int tensorF16 = 6, tensorBf16 = 9, swizzle128 = 3, promote256 = 3;
constexpr auto pollInterval = std::chrono::microseconds(20);

struct alignas(64) TensorMapBytes {
  std::array<std::byte, 128> bytes;
};

/// A device, and an artifact's code on it.
class CudaDevice {
public:
  CudaDevice(const CudaDriver &cuda, const Artifact &artifact, int ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  void checkMemory(uint32_t ranks, uint64_t arenaBytes) const;
  void load();
  void use() const { cuda.contextSetCurrent(context); }
  CudaFunction entry(const fb::Phase &phase) const { return entries.at(&phase); }

  const CudaDriver &cuda;

private:
  void checkCapability() const;
  int attribute(int number) const;
  std::string name() const;
  void loadModule();
  void findEntry(const fb::Phase &phase);

  const Artifact &artifact;
  int device = 0, ordinal;
  CudaContext context = nullptr;
  CudaModule module = nullptr;
  std::unordered_map<const fb::Phase *, CudaFunction> entries;
};

class CudaGpu : public Gpu, public ArenaSource {
public:
  CudaGpu(std::shared_ptr<CudaDriver> driver, std::shared_ptr<CudaDevice> device);
  ~CudaGpu() override;

  ArenaSource *arenaSource() override { return this; }
  void attach(const Arena &) override {}
  void launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) override;
  bool fill(std::byte *to, uint64_t bytes) override;
  bool copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  void finish() override;

  std::byte *allocate(uint64_t bytes) override;
  void release(std::byte *memory) override;

private:
  void encode(const fb::TensorMap &table, void *const *bindings, TensorMapBytes &into) const;

  std::shared_ptr<CudaDriver> driver; // outlives the device
  std::shared_ptr<CudaDevice> device;
  const CudaDriver &cuda;
  CudaStream stream = nullptr;
  bool isIdle = true;
};
} // namespace

//===- Devices ------------------------------------------------------------===//

CudaDevice::CudaDevice(const CudaDriver &cuda, const Artifact &artifact, int ordinal)
    : cuda(cuda), artifact(artifact), ordinal(ordinal) {
  cuda.check(cuda.deviceGet(&device, ordinal), "get a GPU");
  checkCapability();
  if (!attribute(cudaManagedConcurrently))
    badInput("%s: expected a GPU whose managed memory the host may touch beside it, found %s, which has none", artifact.getFile().c_str(),
             name().c_str());
  cuda.check(cuda.primaryContextRetain(&context, device), "use a GPU");
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  use();
  if (module)
    cuda.moduleUnload(module);
  cuda.primaryContextRelease(device);
}

int CudaDevice::attribute(int number) const {
  int value = 0;
  cuda.check(cuda.deviceGetAttribute(&value, number, device), "ask for a GPU's properties");
  return value;
}

std::string CudaDevice::name() const {
  char text[128] = "";
  cuda.deviceGetName(text, sizeof(text) - 1, device);
  return format("GPU %d, %s,", ordinal, printable(text).c_str());
}

/// sm_90a is for 9.0 alone; sm_80 for 8.0 and all that came later, by its PTX.
void CudaDevice::checkCapability() const {
  std::string chip = artifact.gpu()->chip()->str();
  int wanted = std::atoi(chip.c_str() + std::min<size_t>(chip.size(), 3));
  int found = attribute(cudaCapabilityMajor) * 10 + attribute(cudaCapabilityMinor);
  bool isExact = !chip.empty() && chip.back() == 'a';
  if (isExact ? found != wanted : found < wanted)
    badInput("%s: compiled for %s, which needs compute capability %d.%d%s, found %s of %d.%d; compile with another --target",
             artifact.getFile().c_str(), printable(chip).c_str(), wanted / 10, wanted % 10, isExact ? "" : " or later", name().c_str(),
             found / 10, found % 10);
}

void CudaDevice::checkMemory(uint32_t ranks, uint64_t arenaBytes) const {
  size_t free = 0, total = 0;
  use();
  cuda.check(cuda.memGetInfo(&free, &total), "ask for a GPU's memory");
  if (ranks * arenaBytes > free)
    badInput("%s: expected %s of free memory for the arena%s of %u rank%s on %s found %s of %s", artifact.getFile().c_str(),
             bytesText(ranks * arenaBytes).c_str(), ranks == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s", name().c_str(), bytesText(free).c_str(),
             bytesText(total).c_str());
}

void CudaDevice::loadModule() {
  const fb::Gpu &gpu = *artifact.gpu();
  if (gpu.cubin_bytes()) {
    CudaResult result = cuda.moduleLoadData(&module, artifact.cubin().data());
    if (result != cudaNoBinary) // of an older chip than this: its PTX does
      return cuda.check(result, "load the artifact's machine code on a GPU");
  }
  std::string text(artifact.ptx()); // with a zero behind it
  cuda.check(cuda.moduleLoadData(&module, text.c_str()), "load the artifact's PTX on a GPU");
}

void CudaDevice::findEntry(const fb::Phase &phase) {
  CudaFunction function;
  cuda.check(cuda.moduleGetFunction(&function, module, phase.symbol()->c_str()), "find a kernel in the artifact's code");
  uint64_t shared = phase.grid()->shared_bytes();
  if (shared > sharedWithoutAsking)
    cuda.check(cuda.functionSetAttribute(function, cudaMostDynamicShared, static_cast<int>(shared)), "give a kernel its shared memory");
  if (phase.grid()->maps() && phase.grid()->maps()->size() > mostMaps)
    badInput("%s: expected at most %u tensor maps of a launch, found %u", artifact.getFile().c_str(), mostMaps, phase.grid()->maps()->size());
  entries.emplace(&phase, function);
}

void CudaDevice::load() {
  use();
  loadModule();
  const auto *kernels = artifact.manifest().kernels();
  for (uint32_t i = 0; kernels && i < kernels->size(); ++i)
    for (const fb::Phase *phase : *kernels->Get(i)->phases())
      findEntry(*phase);
}

//===- Ranks --------------------------------------------------------------===//

CudaGpu::CudaGpu(std::shared_ptr<CudaDriver> driver, std::shared_ptr<CudaDevice> on)
    : driver(std::move(driver)), device(std::move(on)), cuda(device->cuda) {
  device->use();
  cuda.check(cuda.streamCreate(&stream, cudaStreamNonBlocking), "make a stream");
}

CudaGpu::~CudaGpu() {
  device->use();
  cuda.streamDestroy(stream);
}

std::byte *CudaGpu::allocate(uint64_t bytes) {
  device->use();
  CudaPointer memory = 0;
  cuda.check(cuda.memAllocManaged(&memory, bytes, cudaAttachGlobal), "get memory for a rank's arena on a GPU");
  cuda.check(cuda.memset(memory, 0, bytes), "fill a rank's arena with zeros");
  return reinterpret_cast<std::byte *>(memory);
}

void CudaGpu::release(std::byte *memory) {
  device->use();
  cuda.memFree(reinterpret_cast<CudaPointer>(memory));
}

void CudaGpu::encode(const fb::TensorMap &table, void *const *bindings, TensorMapBytes &into) const {
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
  cuda.check(cuda.tensorMapEncode(&into, table.dtype() == fb::DType::bf16 ? tensorBf16 : tensorF16, rank, address, sizes.data(), strides.data(),
                                  box.data(), steps.data(), 0, swizzle128, promote256, 0),
             "make a tensor map");
}

void CudaGpu::launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings) {
  const fb::Grid &grid = *phase.grid();
  TensorMapBytes maps[mostMaps];
  std::array<void *, 1024> arguments;
  uint32_t count = 0, pointers = pointersOf(kernel), tables = grid.maps() ? grid.maps()->size() : 0;
  if (pointers + tables > arguments.size())
    failed("expected a kernel of at most %zu arguments, found %u", arguments.size(), pointers + tables);
  for (; count < pointers; ++count)
    arguments[count] = const_cast<void **>(&bindings[count]);
  for (uint32_t i = 0; i < tables; ++i) {
    encode(*grid.maps()->Get(i), bindings, maps[i]);
    arguments[count++] = &maps[i];
  }
  device->use();
  isIdle = false;
  CudaResult result = cuda.launchKernel(device->entry(phase), static_cast<unsigned>(grid.blocks()), 1, 1, static_cast<unsigned>(grid.threads()), 1, 1,
                                        static_cast<unsigned>(grid.shared_bytes()), stream, arguments.data(), nullptr);
  if (result != cudaOk)
    failed("kernel '%s': cannot be launched: %s", printable(phase.symbol()->c_str()).c_str(), cuda.reason(result).c_str());
}

bool CudaGpu::fill(std::byte *to, uint64_t bytes) {
  device->use();
  isIdle = false;
  cuda.check(cuda.memsetAsync(reinterpret_cast<CudaPointer>(to), 0, bytes, stream), "fill a range with zeros on a GPU");
  return true;
}

bool CudaGpu::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  device->use();
  isIdle = false;
  cuda.check(cuda.memcpyAsync(reinterpret_cast<CudaPointer>(to), reinterpret_cast<CudaPointer>(from), bytes, stream), "copy on a GPU");
  return true;
}

void CudaGpu::finish() {
  if (isIdle)
    return;
  device->use();
  CudaResult result;
  while ((result = cuda.streamQuery(stream)) == cudaNotReady)
    std::this_thread::sleep_for(pollInterval);
  cuda.check(result, "run kernels");
  isIdle = true;
}

std::vector<std::unique_ptr<Gpu>> fsdprt::makeCudaGpus(const Artifact &artifact, uint32_t ranks, uint64_t arenaBytes) {
  auto driver = std::make_shared<CudaDriver>("--device=cuda", CudaDriver::Use::kernels);
  uint32_t used = std::min(ranks, static_cast<uint32_t>(driver->devices()));
  std::vector<std::shared_ptr<CudaDevice>> devices;
  for (uint32_t i = 0; i < used; ++i) {
    devices.push_back(std::make_shared<CudaDevice>(*driver, artifact, static_cast<int>(i)));
    devices[i]->checkMemory(ranks / used + (i < ranks % used), arenaBytes);
  }
  for (const auto &device : devices)
    device->load();
  std::vector<std::unique_ptr<Gpu>> gpus;
  for (uint32_t i = 0; i < ranks; ++i)
    gpus.push_back(std::make_unique<CudaGpu>(driver, devices[i % used]));
  return gpus;
}
