//===- EmulateTensors.h - Programs with tensor maps in tests ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_EMULATOR_EMULATETENSORS_H
#define FSDPRT_TEST_EMULATOR_EMULATETENSORS_H

#include "emulator/TensorMap.h"
#include "test/emulator/EmulateFixture.h"

namespace fsdprt::test {

using emulate::TensorMap;
using emulate::TensorSwizzle;
using emulate::TensorType;

/// Returns the tensor map of a dense tensor whose dimension 0 is innermost. The address of the
/// tensor is set at the launch.
inline TensorMap denseMap(TensorType type, const std::vector<uint64_t> &sizes,
                          const std::vector<uint32_t> &box,
                          TensorSwizzle swizzle = TensorSwizzle::None) {
  TensorMap map;
  map.type = type, map.rank = sizes.size(), map.swizzle = swizzle;
  uint64_t stride = map.elementBytes();
  for (unsigned d = 0; d < map.rank; ++d) {
    map.sizes[d] = sizes[d], map.box[d] = box[d];
    stride *= sizes[d];
    if (d + 1 < map.rank)
      map.strides[d] = stride;
  }
  return map;
}

/// A function `k` with the body `body`. In the body, %rd0 is the address of `out`, and %m0, %m1,
/// ... are the generic addresses of tensor maps.
class TensorKernel {
public:
  std::string body;
  std::string shared = ".shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 full[2];";
  std::vector<uint32_t> out = std::vector<uint32_t>(4096);
  unsigned threads = 32, blocks = 1;

  template <typename T>
  void add(const TensorMap &map, std::vector<T> &values) {
    maps.push_back({map, values.data(), values.size() * sizeof(T)});
  }
  std::string text() const {
    std::string text =
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p0";
    for (size_t k = 0; k < maps.size(); ++k)
      text += ", .param .align 64 .b8 map" + std::to_string(k) + "[128]";
    text += ")\n{\n" + shared +
            ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<100>; .reg .b64 %rd<40>, "
            "%m<4>;\nld.param.b64 %rd0, [p0];\n";
    for (size_t k = 0; k < maps.size(); ++k)
      text += "mov.b64 %m" + std::to_string(k) + ", map" + std::to_string(k) +
              "; cvta.param.u64 %m" + std::to_string(k) + ", %m" + std::to_string(k) + ";\n";
    return text + body + "\nret;\n}\n";
  }
  emulate::Counters run() {
    Emulator machine("tensor.ptx", text());
    Launch launch;
    launch.entry = "k";
    launch.block[0] = threads, launch.grid[0] = launch.cluster[0] = blocks;
    launch.stepLimit = 1 << 23;
    launch.argument(machine.memory().attach("out", out.data(), out.size() * 4).base);
    for (Tensor &each : maps) {
      each.map.address = machine.memory().attach("tensor", each.values, each.bytes).base;
      launch.argument(emulate::encodeTensorMap(each.map));
    }
    return machine.launch(launch);
  }
  std::string error() {
    return messageOf([&] { run(); });
  }

private:
  struct Tensor {
    TensorMap map;
    void *values;
    size_t bytes;
  };
  std::vector<Tensor> maps;
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EMULATOR_EMULATETENSORS_H
