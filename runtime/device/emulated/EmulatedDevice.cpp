//===- EmulatedDevice.cpp - An emulated GPU ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/emulated/EmulatedDevice.h"
#include "core/Error.h"
#include "device/DeviceFactory.h"
#include "emulator/Emulator.h"
#include "emulator/TensorMap.h"
#include "fsdprt/emulator.h"
#include <algorithm>

using namespace fsdprt;
using namespace fsdprt::emulate;

struct EmulatedDevice::State {
  explicit State(const Artifact &artifact)
      : emulator("PTX of " + artifact.getFile(), std::string(artifact.ptx())) {}
  Emulator emulator;
  Storage *memory = nullptr;
};

EmulatedDevice::EmulatedDevice(const Artifact &artifact, uint32_t numCopies)
    : HostDevice(numCopies), artifact(artifact), state(std::make_unique<State>(artifact)) {}

EmulatedDevice::~EmulatedDevice() = default;

void EmulatedDevice::attach(const Arena &arena, WorkerPool &pool) {
  HostDevice::attach(arena, pool);
  state->memory = &state->emulator.memory().attach("the arena", arena.at(0), arena.mappedBytes());
}

static TensorMapBytes encode(const fb::TensorMap &table, uint64_t address) {
  TensorMap map;
  map.type = table.dtype() == fb::DType::bf16  ? TensorType::BF16
             : table.dtype() == fb::DType::f16 ? TensorType::F16
                                               : TensorType::TF32;
  map.rank = table.sizes()->size();
  map.address = address + table.offset();
  map.swizzle = TensorSwizzle::Bytes128;
  for (uint32_t i = 0; i < map.rank; ++i) {
    map.sizes[i] = table.sizes()->Get(i);
    map.box[i] = table.box()->Get(i);
    if (i > 0)
      map.strides[i - 1] = table.strides()->Get(i - 1);
  }
  return encodeTensorMap(map);
}

void EmulatedDevice::launch(uint32_t number, uint32_t index, void *const *bindings) {
  const fb::Kernel &kernel = *artifact.manifest().kernels()->Get(number);
  const fb::Phase &phase = *kernel.phases()->Get(index);
  const fb::Grid &grid = *phase.grid();
  uint32_t count = pointersOf(kernel);
  auto addressOf = [&](uint32_t binding) {
    return state->memory->base +
           static_cast<uint64_t>(static_cast<uint8_t *>(bindings[binding]) - state->memory->bytes);
  };
  Launch launch;
  launch.entry = phase.symbol()->str();
  const Function *entry = state->emulator.module().find(launch.entry);
  // If the code of the kernel requires a cluster shape, use the required shape, as the CUDA driver
  // does.
  if (entry && entry->requiredCluster[0])
    std::copy_n(entry->requiredCluster, 3, launch.cluster);
  launch.grid[0] = grid.blocks();
  launch.cluster[0] = grid.cluster();
  launch.block[0] = grid.threads();
  launch.dynamicSharedBytes = grid.shared_bytes();
  for (uint32_t i = 0; i < count; ++i)
    launch.argument(addressOf(i));
  for (uint32_t i = 0; grid.maps() && i < grid.maps()->size(); ++i)
    launch.argument(encode(*grid.maps()->Get(i), addressOf(grid.maps()->Get(i)->binding())));
  state->emulator.launch(launch);
}

void fsdprt_register_emulator() {
  registerEmulatedDevices(
      [](const Artifact &artifact, uint32_t numCopies) -> std::unique_ptr<Device> {
        return std::make_unique<EmulatedDevice>(artifact, numCopies);
      });
}
