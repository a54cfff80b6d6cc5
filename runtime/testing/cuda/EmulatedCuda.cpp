//===- EmulatedCuda.cpp - CUDA driver API over the emulator -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the part of CUDA's driver API that is needed to run programs. A program that loads
// libcuda by its name therefore runs without a GPU. The library has devices with the properties of
// sm_90a, modules of PTX, memory of device and host, streams, events and graphs (Queues.cpp).
// Names, numbers and argument orders are taken from cuda.h of CUDA 13. If the emulator finds a
// fault in a kernel, the library prints the fault to standard error, and the launch and all later
// calls fail, as on a GPU. The library also prints errors that CUDA does not report: a wait for an
// event that was never recorded, and unordered accesses of two streams to the same bytes.
//
// The file is long, because it has one short function for each function of the driver.
//
// The library supports neither machine code, nor textures, nor peers without mutual access, nor
// streams that wait for the context's own stream.
//
//===----------------------------------------------------------------------===//

#include "emulator/TensorMap.h"
#include "testing/cuda/Driver.h"
#include <algorithm>
#include <cstdlib>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::emulated;

namespace {
/// A CUdevice_attribute and its value for an H100.
struct Attribute {
  int number, value;
};
constexpr Attribute attributes[] = {{1, 1024},  {8, 49152},   {10, 32}, {12, 65536}, {16, 132},
                                    {39, 2048}, {81, 233472}, {89, 1},  {97, 232448}};
constexpr int capabilityMajor = 75, capabilityMinor = 76;
constexpr int maxDynamicShared = 8;                  // a CUfunction_attribute
constexpr int jitErrorLog = 5, jitErrorLogBytes = 6; // CUjit_option values
constexpr uint64_t sharedWithoutAsking = 48 * 1024, mostShared = 232448;

/// CUlaunchAttribute and CUlaunchConfig. The only supported attribute is the cluster size.
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

/// Returns the ranges that a kernel has accessed, and clears their flags in Storage::touched.
std::vector<Touched> takeTouched(Driver &driver) {
  std::vector<Touched> found;
  for (auto &[address, allocation] : driver.allocations) {
    Storage &storage = *allocation.storage;
    if (storage.touchedBegin >= storage.touchedEnd)
      continue;
    auto first = storage.touched.begin() + static_cast<std::ptrdiff_t>(storage.touchedBegin);
    auto last = storage.touched.begin() + static_cast<std::ptrdiff_t>(storage.touchedEnd);
    auto addressOf = [&](auto at) {
      return storage.base + static_cast<uint64_t>(at - storage.touched.begin());
    };
    for (uint8_t bit : {Storage::wasRead, Storage::wasWritten})
      for (auto at = first; at != last;) {
        auto begin = std::find_if(at, last, [&](uint8_t each) { return each & bit; });
        at = std::find_if(begin, last, [&](uint8_t each) { return !(each & bit); });
        if (begin != at)
          found.push_back({addressOf(begin), addressOf(at), bit == Storage::wasWritten});
      }
    std::fill(first, last, uint8_t(0));
    storage.touchedBegin = UINT64_MAX, storage.touchedEnd = 0;
  }
  return found;
}

void load(Driver &driver, LoadedModule &module) {
  if (module.isLoaded)
    return;
  driver.expectRoom(module.context->device, module.bytes);
  module.isLoaded = true;
}

void writeLog(const char *text, unsigned count, const int *options, void *const *values) {
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == jitErrorLog)
      log = static_cast<char *>(values[i]);
    else if (options[i] == jitErrorLogBytes)
      bytes = reinterpret_cast<size_t>(values[i]);
  if (log && bytes)
    std::snprintf(log, bytes, "%s\n", text);
}

Result launchOn(Driver &driver, void *function, void *onStream, Launch launch, void **parameters) {
  const Entry &entry = *static_cast<Entry *>(function);
  Stream &stream = driver.streamOf(onStream);
  Emulator &emulator = entry.module->emulator;
  if (entry.module->context != stream.context)
    throw Misuse(invalidHandle, "launches a kernel of another context than its stream's");
  if (launch.dynamicSharedBytes > entry.dynamicShared || !parameters)
    return invalidValue;
  load(driver, *entry.module);
  launch.entry = entry.name;
  launch.seed = driver.drawSeed();
  const uint32_t (&required)[3] = emulator.module().find(entry.name)->requiredCluster;
  if (required[0] &&
      std::all_of(launch.cluster, launch.cluster + 3, [](uint32_t size) { return size == 1; }))
    std::copy_n(required, 3, launch.cluster);
  const auto &declared = emulator.module().find(entry.name)->parameters;
  for (size_t i = 0; i < declared.size(); ++i) {
    auto bytes = static_cast<const uint8_t *>(parameters[i]);
    launch.arguments.emplace_back(bytes, bytes + declared[i]->bytes);
  }
  bool fails = driver.isFaulty("fail", entry.name), hangs = driver.isFaulty("hang", entry.name);
  bool flips = driver.isFaulty("flip", entry.name);
  if (driver.isFaulty("crash", entry.name))
    std::abort();
  OperationRef enqueued =
      driver.enqueue(stream, "kernel '" + entry.name + "'",
                     [&driver, &emulator, fails, flips, launch = std::move(launch)] {
                       if (fails)
                         failed("kernel '%s': a planted fault", launch.entry.c_str());
                       std::this_thread::sleep_for(driver.delay());
                       emulator.launch(launch);
                       std::vector<Touched> touched = takeTouched(driver);
                       if (flips)
                         driver.flipSecond(touched);
                       return touched;
                     });
  enqueued->hangs = hangs;
  if (driver.blocksLaunches() && !stream.capture)
    driver.await(enqueued);
  return success;
}

/// Source or target of a copy. `storage` is null for host memory that the driver has not allocated.
struct Side {
  Storage *storage;
  uint64_t address;
};

Side sideOf(Driver &driver, uint64_t address, uint64_t bytes, bool mayBeHost) {
  Storage *found = driver.memory->find(address);
  if (found || !mayBeHost)
    return {&driver.range(address, bytes, "copies"), address};
  return {nullptr, address};
}

uint8_t *bytesOf(const Side &side) {
  return side.storage ? side.storage->bytes + (side.address - side.storage->base)
                      : reinterpret_cast<uint8_t *>(side.address);
}

/// Copies bytes immediately, together with their flags in Storage::written.
void copyNow(const Side &to, const Side &from, uint64_t bytes) {
  std::memmove(bytesOf(to), bytesOf(from), bytes);
  if (!to.storage)
    return;
  auto target =
      to.storage->written.begin() + static_cast<std::ptrdiff_t>(to.address - to.storage->base);
  if (from.storage)
    std::copy_n(from.storage->written.begin() +
                    static_cast<std::ptrdiff_t>(from.address - from.storage->base),
                bytes, target);
  else
    std::fill_n(target, bytes, uint8_t(1));
}

OperationRef copy(Driver &driver, uint64_t to, uint64_t from, uint64_t bytes, void *stream,
                  bool isHostTo, bool isHostFrom) {
  Side target = sideOf(driver, to, bytes, isHostTo),
       source = sideOf(driver, from, bytes, isHostFrom);
  return driver.enqueue(driver.streamOf(stream),
                        format("a copy of %llu bytes", static_cast<unsigned long long>(bytes)),
                        [&driver, to, from, bytes, target, source] {
                          std::vector<Touched> touched;
                          if (source.storage)
                            driver.range(from, bytes, "copies"),
                                touched.push_back({from, from + bytes, false});
                          if (target.storage)
                            driver.range(to, bytes, "copies"),
                                touched.push_back({to, to + bytes, true});
                          copyNow(target, source, bytes);
                          return touched;
                        });
}

OperationRef fill(Driver &driver, uint64_t to, unsigned char value, uint64_t bytes, void *stream) {
  driver.range(to, bytes, "fills");
  return driver.enqueue(driver.streamOf(stream),
                        format("a fill of %llu bytes", static_cast<unsigned long long>(bytes)),
                        [&driver, to, value, bytes] {
                          Storage &storage = driver.range(to, bytes, "fills");
                          std::memset(storage.bytes + (to - storage.base), value, bytes);
                          std::fill_n(storage.written.begin() +
                                          static_cast<std::ptrdiff_t>(to - storage.base),
                                      bytes, uint8_t(1));
                          return std::vector<Touched>{{to, to + bytes, true}};
                        });
}
} // namespace

extern "C" {

Result cuInit(unsigned) {
  if (std::string wrong = wrongVariable(); !wrong.empty()) {
    std::fprintf(stderr, "emulated CUDA: %s\n", wrong.c_str());
    return invalidValue;
  }
  Driver::only().isReady = true;
  return success;
}
Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return success;
}
Result cuDeviceGetCount(int *count) {
  *count = static_cast<int>(Driver::only().contexts.size());
  return success;
}
Result cuDeviceGet(int *found, int ordinal) {
  *found = ordinal;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < Driver::only().contexts.size()
             ? success
             : invalidValue;
}
Result cuDeviceGetName(char *name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated");
  return success;
}
Result cuDeviceGetUuid_v2(void *uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return success;
}
Result cuDeviceGetAttribute(int *value, int number, int) {
  if (number == capabilityMajor || number == capabilityMinor) {
    *value = number == capabilityMajor ? capability() / 10 : capability() % 10;
    return success;
  }
  for (const Attribute &attribute : attributes)
    if (attribute.number == number) {
      *value = attribute.value;
      return success;
    }
  return invalidValue;
}
/// If FSDPRT_EMULATED_CUDA_NO_PEERS is set, devices cannot access each other's memory.
Result cuDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer && !std::getenv("FSDPRT_EMULATED_CUDA_NO_PEERS");
  return success;
}
Result cuCtxEnablePeerAccess(void *peer, unsigned) {
  return call(invalidContext,
              [&](Driver &driver) { return peer == &driver.current() ? invalidValue : success; });
}
Result cuDevicePrimaryCtxRetain(void **context, int device) {
  return call(outOfMemory, [&](Driver &driver) {
    Context &found = driver.contexts.at(static_cast<size_t>(device));
    ++found.users;
    *context = &found;
    if (driver.usedBytes(device) <= memoryBytes())
      return success;
    --found.users;
    return outOfMemory;
  });
}
Result cuDevicePrimaryCtxRelease_v2(int device) {
  return call(invalidContext, [&](Driver &driver) {
    Context &found = driver.contexts.at(static_cast<size_t>(device));
    if (found.users == 0)
      return invalidContext;
    --found.users;
    return success;
  });
}
Result cuCtxSetCurrent(void *context) {
  currentContext() = static_cast<Context *>(context);
  return success;
}

Result cuCtxGetCurrent(void **context) {
  *context = currentContext();
  return success;
}

int fsdp_emulated_cuda_enqueue(void *onStream, const fsdp_emulated_cuda_work *given) {
  return call(invalidValue, [&](Driver &driver) {
    fsdp_emulated_cuda_work work = *given;
    auto bytesAt = [&driver](uint64_t address, uint64_t bytes) -> uint8_t * {
      if (bytes == 0)
        return nullptr;
      Storage &storage = driver.range(address, bytes, "moves");
      return storage.bytes + (address - storage.base);
    };
    bytesAt(work.source, work.sourceBytes), bytesAt(work.target, work.targetBytes);
    Stream &stream = driver.streamOf(onStream);
    auto body = [&driver, work] {
      std::vector<Touched> touched;
      if (work.sourceBytes)
        touched.push_back({work.source, work.source + work.sourceBytes, false});
      if (work.targetBytes) {
        Storage &storage = driver.range(work.target, work.targetBytes, "moves");
        std::fill_n(storage.written.begin() +
                        static_cast<std::ptrdiff_t>(work.target - storage.base),
                    work.targetBytes, uint8_t(1));
        touched.push_back({work.target, work.target + work.targetBytes, true});
      }
      return touched;
    };
    driver.enqueue(stream, work.name, body, nullptr, [work, bytesAt]() -> std::function<bool()> {
      return [work, bytesAt, begun = work.begin(work.user)] {
        return work.attempt(begun, bytesAt(work.source, work.sourceBytes),
                            bytesAt(work.target, work.targetBytes)) != 0;
      };
    });
    return success;
  });
}

/// Resets the driver for tests that continue after a failure.
void fsdp_emulated_cuda_reset(void) {
  Driver &driver = Driver::only();
  std::lock_guard lock(driver.mutex);
  driver.reset();
}

Result cuGetErrorString(int error, const char **text) {
  static const std::map<int, const char *> words = {
      {success, "no error"},
      {invalidValue, "invalid argument"},
      {outOfMemory, "out of memory"},
      {notInitialised, "initialization error"},
      {invalidContext, "invalid device context"},
      {noBinary,
       "no kernel image is available for execution on the device: the emulator takes PTX"},
      {invalidPtx, "a PTX JIT compilation failed"},
      {invalidHandle, "invalid resource handle"},
      {notFound, "named symbol not found"},
      {captureUnsupported, "operation not permitted when stream is capturing"},
      {captureInvalidated, "operation failed due to a previous error during capture"},
      {captureMerge, "operation would result in a merge of separate capture sequences"},
      {captureUnjoined, "capturing stream has unjoined work"},
      {captureIsolation, "dependency created on uncaptured work in another stream"},
      {capturedEvent, "operation not permitted on an event last recorded in a capturing stream"}};
  auto found = words.find(error);
  *text = found == words.end() ? "unspecified launch failure" : found->second;
  return success;
}

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  return call(outOfMemory, [&](Driver &driver) {
    int device = driver.current().device;
    if (bytes == 0)
      return invalidValue;
    driver.expectRoom(device, bytes);
    std::string name = "allocation " + std::to_string(driver.allocations.size() + 1);
    *address = driver.add(
        {&driver.memory->allocate(std::move(name), bytes), MemoryKind::device, device, nullptr});
    return success;
  });
}
static Result allocateMapped(Address *address, size_t bytes, MemoryKind kind) {
  return call(outOfMemory, [&](Driver &driver) {
    int device = driver.current().device;
    if (bytes == 0)
      return invalidValue;
    if (kind == MemoryKind::managed)
      driver.expectRoom(device, bytes);
    auto mapping = std::make_unique<HostMapping>(bytes);
    const char *name = kind == MemoryKind::managed ? "managed" : "pinned";
    Storage &storage = driver.memory->attachInPlace(
        format("%s allocation %zu", name, driver.allocations.size() + 1), mapping->memory, bytes);
    *address = driver.add({&storage, kind, device, std::move(mapping)});
    return success;
  });
}
Result cuMemAllocManaged(Address *address, size_t bytes, unsigned) {
  return allocateMapped(address, bytes, MemoryKind::managed);
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  Address address = 0;
  Result result = allocateMapped(&address, bytes, MemoryKind::pinned);
  *memory = reinterpret_cast<void *>(address);
  return result;
}
Result cuMemFree_v2(Address address) {
  return call(invalidValue, [&](Driver &driver) {
    driver.current();
    driver.free(address, /*isPinned=*/false);
    return success;
  });
}
Result cuMemFreeHost(void *memory) {
  return call(invalidValue, [&](Driver &driver) {
    driver.current();
    driver.free(reinterpret_cast<uint64_t>(memory), /*isPinned=*/true);
    return success;
  });
}
Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  return call(invalidValue, [&](Driver &driver) {
    *total = memoryBytes();
    *free = *total - std::min<uint64_t>(*total, driver.usedBytes(driver.current().device));
    return success;
  });
}
Result cuDeviceTotalMem_v2(size_t *total, int) {
  *total = memoryBytes();
  return success;
}
/// Host memory cannot be registered, because the device can access only memory of the driver.
Result cuMemHostRegister_v2(void *, size_t, unsigned) { return invalidValue; }
Result cuMemHostUnregister(void *) { return invalidValue; }
Result cuMemHostGetDevicePointer_v2(Address *address, void *memory, unsigned) {
  *address = reinterpret_cast<uint64_t>(memory);
  return success;
}
/// Supports only CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
Result cuPointerGetAttribute(void *value, int attribute, Address address) {
  return call(invalidValue, [&](Driver &driver) {
    Storage *storage = driver.memory->find(address);
    auto found = storage ? driver.allocations.find(storage->base) : driver.allocations.end();
    if (attribute != 2 || found == driver.allocations.end())
      return invalidValue;
    *static_cast<uint32_t *>(value) = found->second.kind == MemoryKind::pinned ? 1 : 2;
    return success;
  });
}

Result cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
  return call(invalidValue, [&](Driver &driver) {
    driver.await(copy(driver, to, reinterpret_cast<uint64_t>(from), bytes, nullptr, false, true));
    return success;
  });
}
Result cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
  return call(invalidValue, [&](Driver &driver) {
    driver.await(copy(driver, reinterpret_cast<uint64_t>(to), from, bytes, nullptr, true, false));
    return success;
  });
}
/// Fails if host memory is not pinned: CUDA could access such memory at any later time.
Result cuMemcpyAsync(Address to, Address from, size_t bytes, void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    copy(driver, to, from, bytes, stream, false, false);
    return success;
  });
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    fill(driver, to, value, bytes, stream);
    return success;
  });
}
Result cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) {
  return call(invalidValue, [&](Driver &driver) {
    driver.await(fill(driver, to, value, bytes, nullptr));
    return success;
  });
}

/// Supports only the options for the error log and its size.
Result cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                          void **values) {
  return call(invalidPtx, [&](Driver &driver) {
    auto text = static_cast<const char *>(image);
    if (std::strncmp(text,
                     "\x7f"
                     "ELF",
                     4) == 0)
      return noBinary;
    Context &context = driver.current();
    try {
      auto loaded = std::make_unique<LoadedModule>(&context, text, driver.memory);
      *module = loaded.get();
      driver.modules[loaded.get()] = std::move(loaded);
    } catch (const Error &error) {
      writeLog(error.what(), count, options, values);
      throw;
    }
    return success;
  });
}
Result cuModuleLoadData(void **module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
Result cuModuleUnload(void *module) {
  return call(invalidValue, [&](Driver &driver) {
    driver.awaitAll();
    return driver.modules.erase(static_cast<LoadedModule *>(module)) ? success : invalidHandle;
  });
}
Result cuModuleGetFunction(void **function, void *module, const char *name) {
  return call(notFound, [&](Driver &) {
    auto loaded = static_cast<LoadedModule *>(module);
    const Function *found = loaded->emulator.module().find(name);
    if (!found || !found->isEntry)
      return notFound;
    *function =
        &loaded->entries.try_emplace(name, Entry{loaded, name, sharedWithoutAsking}).first->second;
    return success;
  });
}
Result cuFuncLoad(void *function) {
  return call(invalidValue, [&](Driver &driver) {
    load(driver, *static_cast<Entry *>(function)->module);
    return success;
  });
}
Result cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != maxDynamicShared || value < 0 || static_cast<uint64_t>(value) > mostShared)
    return invalidValue;
  static_cast<Entry *>(function)->dynamicShared = static_cast<uint64_t>(value);
  return success;
}
Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      void *stream, void **parameters, void **) {
  return call(launchFailed, [&](Driver &driver) {
    Launch launch;
    uint32_t grid[] = {gridX, gridY, gridZ}, block[] = {blockX, blockY, blockZ};
    std::copy_n(grid, 3, launch.grid);
    std::copy_n(block, 3, launch.block);
    launch.dynamicSharedBytes = sharedBytes;
    return launchOn(driver, function, stream, std::move(launch), parameters);
  });
}
Result cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **) {
  return call(launchFailed, [&](Driver &driver) {
    Launch launch;
    std::copy_n(config->grid, 3, launch.grid);
    std::copy_n(config->block, 3, launch.block);
    launch.dynamicSharedBytes = config->sharedBytes;
    for (unsigned i = 0; i < config->count; ++i) {
      if (config->attributes[i].id != clusterDimension)
        return invalidValue;
      std::copy_n(config->attributes[i].value, 3, launch.cluster);
    }
    return launchOn(driver, function, config->stream, std::move(launch), parameters);
  });
}
Result cuTensorMapEncodeTiled(void *to, unsigned type, unsigned rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps, unsigned interleave, unsigned swizzle,
                              unsigned promotion, unsigned fill) {
  return call(invalidValue, [&](Driver &) {
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
}
