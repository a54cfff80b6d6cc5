//===- EmulatedCuda.cpp - CUDA's driver over the emulator -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of CUDA's driver interface that launches kernels, so that a program which loads libcuda by name runs without a
// GPU: one device of sm_90a's sizes, modules of PTX, streams on which everything has ended when the call returns. Names,
// numbers and the order of arguments are those of CUDA 13's cuda.h. A kernel in which the emulator finds a fault is a
// launch that failed, for good as on a GPU; what it found goes to standard error.
//
// Not done: machine code, several devices, textures, graphs.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "emulate/Emulator.h"
#include "emulate/TensorMap.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <utility>

using namespace fsdprt;
using namespace fsdprt::emulate;

namespace {
enum Result : int {
  success = 0, invalidValue = 1, outOfMemory = 2, notInitialised = 3, noBinary = 209, invalidPtx = 218, notFound = 500, launchFailed = 719
};

/// Numbers of CUdevice_attribute, and what an H100 says.
struct Attribute {
  int number, value;
};
constexpr Attribute attributes[] = {{1, 1024},   {8, 49152}, {10, 32},     {12, 65536}, {16, 132},
                                    {39, 2048},  {75, 9},    {76, 0},      {81, 233472}, {89, 1},
                                    {97, 232448}};
constexpr int maxDynamicShared = 8; // of CUfunction_attribute
constexpr uint64_t sharedWithoutAsking = 48 * 1024, mostShared = 232448;

/// CUlaunchAttribute, of which clusters are all that is known here, and CUlaunchConfig.
constexpr int clusterDimension = 4;
struct LaunchAttribute {
  int id, pad;
  uint32_t value[16];
};
struct LaunchConfig {
  uint32_t grid[3], block[3], sharedBytes;
  void *stream;
  const LaunchAttribute *attributes;
  uint32_t count;
};

struct LoadedModule;
struct Entry {
  LoadedModule *module;
  std::string name;
  uint64_t dynamicShared = sharedWithoutAsking;
};
struct LoadedModule {
  LoadedModule(std::string text, std::shared_ptr<Memory> memory) : emulator("module.ptx", std::move(text), std::move(memory)) {}
  Emulator emulator;
  std::map<std::string, Entry> entries;
};
struct Event {
  std::chrono::steady_clock::time_point time;
};

/// Memory that the host has at the same address: its own, which no emulated allocation comes near.
struct Managed {
  explicit Managed(size_t bytes) : bytes(bytes) {
    static uint64_t next = uint64_t(0x5a) << 40;
    memory = mmap(reinterpret_cast<void *>(next), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    next += (bytes + (2 << 20)) >> 20 << 20;
  }
  Managed(Managed &&other) noexcept : memory(std::exchange(other.memory, MAP_FAILED)), bytes(other.bytes) {}
  ~Managed() {
    if (memory != MAP_FAILED)
      munmap(memory, bytes);
  }
  void *memory;
  size_t bytes;
};

struct Device {
  std::mutex mutex;
  bool isReady = false, hasFailed = false;
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  std::map<uint64_t, Storage *> allocations;
  std::map<uint64_t, Managed> managed;
  std::map<LoadedModule *, std::unique_ptr<LoadedModule>> modules;
  std::map<Event *, std::unique_ptr<Event>> events;

  /// The bytes [address, +count) of one allocation, or null.
  Storage *range(uint64_t address, uint64_t count) {
    Storage *storage = memory->find(address);
    return storage && allocations.count(storage->base) && count <= storage->base + storage->size - address ? storage : nullptr;
  }
};

Device &device() {
  static Device only;
  return only;
}

/// Runs a call on the device; what it throws is said and becomes `onError`.
template <typename Body> Result call(Result onError, Body body) {
  Device &only = device();
  std::lock_guard lock(only.mutex);
  if (!only.isReady)
    return notInitialised;
  if (only.hasFailed)
    return launchFailed;
  try {
    return body(only);
  } catch (const std::bad_alloc &) {
    return outOfMemory;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "emulated CUDA: %s\n", error.what());
    return onError;
  }
}

/// 80 GB; for tests FSDPRT_EMULATED_CUDA_BYTES.
uint64_t memoryBytes() {
  const char *given = std::getenv("FSDPRT_EMULATED_CUDA_BYTES");
  return given ? std::strtoull(given, nullptr, 10) : uint64_t(80) << 30;
}

Result launchOn(Device &only, const Entry &entry, Launch launch, void **parameters) {
  Emulator &emulator = entry.module->emulator;
  if (launch.dynamicSharedBytes > entry.dynamicShared || !parameters)
    return invalidValue;
  launch.entry = entry.name;
  const uint32_t (&required)[3] = emulator.module().find(entry.name)->requiredCluster;
  if (required[0] && std::all_of(launch.cluster, launch.cluster + 3, [](uint32_t size) { return size == 1; }))
    std::copy_n(required, 3, launch.cluster);
  const auto &declared = emulator.module().find(entry.name)->parameters;
  for (size_t i = 0; i < declared.size(); ++i) {
    auto bytes = static_cast<const uint8_t *>(parameters[i]);
    launch.arguments.emplace_back(bytes, bytes + declared[i]->bytes);
  }
  try {
    emulator.launch(launch);
  } catch (...) {
    only.hasFailed = true;
    throw;
  }
  return success;
}
} // namespace

extern "C" {
using Pointer = unsigned long long;

Result cuInit(unsigned) {
  device().isReady = true;
  return success;
}
Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return success;
}
Result cuDeviceGetCount(int *count) {
  *count = 1;
  return success;
}
Result cuDeviceGet(int *found, int ordinal) {
  *found = 0;
  return ordinal == 0 ? success : invalidValue;
}
Result cuDeviceGetName(char *name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated");
  return success;
}
Result cuDeviceGetAttribute(int *value, int number, int) {
  for (const Attribute &attribute : attributes)
    if (attribute.number == number) {
      *value = attribute.value;
      return success;
    }
  return invalidValue;
}
Result cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &device();
  return success;
}
Result cuDevicePrimaryCtxRelease_v2(int) { return success; }
Result cuCtxSetCurrent(void *) { return success; }
Result cuCtxSynchronize() {
  return call(launchFailed, [](Device &) { return success; });
}

Result cuGetErrorString(int error, const char **text) {
  *text = error == success          ? "no error"
          : error == invalidValue   ? "invalid argument"
          : error == outOfMemory    ? "out of memory"
          : error == notInitialised ? "initialization error"
          : error == noBinary       ? "no kernel image is available for execution on the device: the emulator takes PTX"
          : error == invalidPtx     ? "a PTX JIT compilation failed"
          : error == notFound       ? "named symbol not found"
                                    : "unspecified launch failure";
  return success;
}

//===--- Memory ----------------------------------------------------------===//

Result cuMemAlloc_v2(Pointer *address, size_t bytes) {
  return call(outOfMemory, [&](Device &only) {
    if (bytes == 0)
      return invalidValue;
    Storage &storage = only.memory->allocate("allocation " + std::to_string(only.allocations.size() + 1), bytes);
    only.allocations[storage.base] = &storage;
    *address = storage.base;
    return success;
  });
}
Result cuMemFree_v2(Pointer address) {
  return call(invalidValue, [&](Device &only) {
    auto found = only.allocations.find(address);
    if (found == only.allocations.end())
      return invalidValue;
    only.memory->release(*found->second);
    only.allocations.erase(found);
    only.managed.erase(address);
    return success;
  });
}
Result cuMemAllocManaged(Pointer *address, size_t bytes, unsigned) {
  return call(outOfMemory, [&](Device &only) {
    if (bytes == 0)
      return invalidValue;
    Managed made(bytes);
    Storage &storage = only.memory->attachInPlace("managed allocation " + std::to_string(only.allocations.size() + 1), made.memory, bytes);
    only.allocations[storage.base] = &storage;
    only.managed.emplace(storage.base, std::move(made));
    *address = storage.base;
    return success;
  });
}
/// As much as an H100 has.
Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  return call(invalidValue, [&](Device &only) {
    uint64_t used = 0;
    for (const auto &[address, storage] : only.allocations)
      used += storage->size;
    *total = memoryBytes();
    *free = *total - std::min<uint64_t>(*total, used);
    return success;
  });
}
Result cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) {
  return call(invalidValue, [&](Device &only) {
    Storage *storage = only.range(to, bytes);
    if (!storage)
      return invalidValue;
    std::memcpy(storage->bytes + (to - storage->base), from, bytes);
    std::fill_n(storage->written.begin() + static_cast<std::ptrdiff_t>(to - storage->base), bytes, uint8_t(1));
    return success;
  });
}
Result cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) {
  return call(invalidValue, [&](Device &only) {
    Storage *storage = only.range(from, bytes);
    if (!storage)
      return invalidValue;
    std::memcpy(to, storage->bytes + (from - storage->base), bytes);
    return success;
  });
}
Result cuMemsetD8_v2(Pointer to, unsigned char value, size_t bytes) {
  std::vector<unsigned char> all(bytes, value);
  return cuMemcpyHtoD_v2(to, all.data(), bytes);
}
Result cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void *) { return cuMemsetD8_v2(to, value, bytes); }
Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void *) {
  std::vector<unsigned char> all(bytes);
  Result result = cuMemcpyDtoH_v2(all.data(), from, bytes);
  return result == success ? cuMemcpyHtoD_v2(to, all.data(), bytes) : result;
}

//===--- Modules and launches --------------------------------------------===//

Result cuModuleLoadData(void **module, const void *image) {
  return call(invalidPtx, [&](Device &only) {
    auto text = static_cast<const char *>(image);
    if (std::strncmp(text, "\x7f" "ELF", 4) == 0)
      return noBinary;
    auto loaded = std::make_unique<LoadedModule>(text, only.memory);
    *module = loaded.get();
    only.modules[loaded.get()] = std::move(loaded);
    return success;
  });
}
Result cuModuleUnload(void *module) {
  return call(invalidValue, [&](Device &only) { return only.modules.erase(static_cast<LoadedModule *>(module)) ? success : invalidValue; });
}
Result cuModuleGetFunction(void **function, void *module, const char *name) {
  return call(notFound, [&](Device &) {
    auto loaded = static_cast<LoadedModule *>(module);
    const Function *found = loaded->emulator.module().find(name);
    if (!found || !found->isEntry)
      return notFound;
    *function = &loaded->entries.try_emplace(name, Entry{loaded, name}).first->second;
    return success;
  });
}
Result cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != maxDynamicShared || value < 0 || static_cast<uint64_t>(value) > mostShared)
    return invalidValue;
  static_cast<Entry *>(function)->dynamicShared = static_cast<uint64_t>(value);
  return success;
}
Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
                      unsigned sharedBytes, void *, void **parameters, void **) {
  return call(launchFailed, [&](Device &only) {
    Launch launch;
    uint32_t grid[] = {gridX, gridY, gridZ}, block[] = {blockX, blockY, blockZ};
    std::copy_n(grid, 3, launch.grid);
    std::copy_n(block, 3, launch.block);
    launch.dynamicSharedBytes = sharedBytes;
    return launchOn(only, *static_cast<Entry *>(function), std::move(launch), parameters);
  });
}
Result cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **) {
  return call(launchFailed, [&](Device &only) {
    Launch launch;
    std::copy_n(config->grid, 3, launch.grid);
    std::copy_n(config->block, 3, launch.block);
    launch.dynamicSharedBytes = config->sharedBytes;
    for (unsigned i = 0; i < config->count; ++i) {
      if (config->attributes[i].id != clusterDimension)
        return invalidValue;
      std::copy_n(config->attributes[i].value, 3, launch.cluster);
    }
    return launchOn(only, *static_cast<Entry *>(function), std::move(launch), parameters);
  });
}
Result cuTensorMapEncodeTiled(void *to, unsigned type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                              const uint32_t *box, const uint32_t *steps, unsigned interleave, unsigned swizzle, unsigned promotion,
                              unsigned fill) {
  return call(invalidValue, [&](Device &) {
    TensorMap map;
    if (rank == 0 || rank > maxTensorRank)
      return invalidValue;
    map.type = static_cast<TensorType>(type);
    map.rank = rank;
    map.address = reinterpret_cast<uint64_t>(address);
    std::copy_n(sizes, rank, map.sizes);
    std::copy_n(strides, rank - 1, map.strides);
    std::copy_n(box, rank, map.box);
    std::copy_n(steps, rank, map.steps);
    map.interleave = static_cast<TensorInterleave>(interleave);
    map.swizzle = static_cast<TensorSwizzle>(swizzle);
    map.promotion = promotion;
    map.fill = static_cast<TensorFill>(fill);
    TensorMapBytes bytes = encodeTensorMap(map);
    std::memcpy(to, bytes.data(), bytes.size());
    return success;
  });
}

//===--- Streams and events ----------------------------------------------===//

Result cuStreamCreate(void **stream, unsigned) {
  *stream = &device();
  return success;
}
Result cuStreamDestroy_v2(void *) { return success; }
Result cuStreamQuery(void *) { return cuCtxSynchronize(); }
Result cuEventCreate(void **event, unsigned) {
  return call(invalidValue, [&](Device &only) {
    auto made = std::make_unique<Event>();
    *event = made.get();
    only.events[made.get()] = std::move(made);
    return success;
  });
}
Result cuEventRecord(void *event, void *) {
  static_cast<Event *>(event)->time = std::chrono::steady_clock::now();
  return success;
}
Result cuEventSynchronize(void *) { return cuCtxSynchronize(); }
Result cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
  *milliseconds = std::chrono::duration<float, std::milli>(static_cast<Event *>(to)->time - static_cast<Event *>(from)->time).count();
  return success;
}
}
