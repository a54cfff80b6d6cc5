//===- EmulatorDevice.cpp - Run PTX in the emulator -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "EmulatorDevice.h"
#include "emulator/Emulator.h"
#include "emulator/TensorMap.h"
#include <algorithm>

using namespace fsdprt::emulate;

struct EmulatorDevice::State {
  explicit State(const std::string &ptx) : emulator("kernels.ptx", ptx) {}
  Emulator emulator;
};

EmulatorDevice::EmulatorDevice(const std::string &ptx) {
  try {
    state = std::make_unique<State>(ptx);
  } catch (const std::exception &error) {
    problem = error.what();
  }
}

EmulatorDevice::~EmulatorDevice() = default;

static void add(EmulatorCounts &counts, const Counters &found) {
  counts.bankConflicts += found.bankConflicts;
  counts.sharedPasses += found.sharedPasses;
  counts.multiplyAdds += found.multiplyAdds;
  counts.instructions += found.instructions;
}

static TensorMapBytes encode(const EmulatorTensorMap &own, uint64_t base) {
  TensorMap map;
  map.type = own.type == EmulatorTensorMap::BF16  ? TensorType::BF16
             : own.type == EmulatorTensorMap::F16 ? TensorType::F16
                                                  : TensorType::TF32;
  map.rank = static_cast<uint32_t>(own.sizes.size());
  map.address = base + own.offset;
  std::copy(own.sizes.begin(), own.sizes.end(), map.sizes);
  std::copy(own.strides.begin(), own.strides.end(), map.strides);
  std::copy(own.box.begin(), own.box.end(), map.box);
  map.swizzle = TensorSwizzle::Bytes128;
  return encodeTensorMap(map);
}

std::string EmulatorDevice::run(const std::vector<EmulatorLaunch> &launches,
                                const std::vector<EmulatorBinding> &bindings, size_t scratchBytes,
                                EmulatorCounts &counts) {
  counts = {};
  if (!state)
    return problem;
  std::vector<Storage *> storages;
  std::string problem;
  try {
    Memory &memory = state->emulator.memory();
    for (const EmulatorBinding &binding : bindings)
      storages.push_back(&memory.attach(binding.name, binding.data, binding.bytes));
    if (scratchBytes)
      storages.push_back(&memory.allocate("scratch", scratchBytes));
    for (const EmulatorLaunch &own : launches) {
      Launch launch;
      launch.entry = own.entry;
      launch.grid[0] = own.blocks;
      launch.block[0] = own.threads;
      launch.cluster[0] = own.cluster;
      launch.dynamicSharedBytes = own.sharedBytes;
      for (Storage *storage : storages)
        launch.argument(storage->base);
      for (const EmulatorTensorMap &map : own.maps)
        launch.argument(encode(map, storages.at(map.binding)->base));
      add(counts, state->emulator.launch(launch));
    }
  } catch (const std::exception &error) {
    problem = error.what();
  }
  for (Storage *storage : storages)
    state->emulator.memory().release(*storage);
  return problem;
}
