//===- EmulatorDevice.h - Run PTX in the emulator ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares an interface of the emulator for code that is built with the compiler's options. The
// interface is needed because the compiler is built without exceptions, and the emulator is built
// without the headers of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_EMULATORDEVICE_H
#define FSDP_TOOLS_KERNELTEST_EMULATORDEVICE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// A tensor map of bf16, f16 or tf32 with 128-byte swizzling.
struct EmulatorTensorMap {
  size_t binding;
  uint64_t offset;
  enum { BF16, F16, TF32 } type;
  std::vector<int64_t> sizes, strides, box;
};

struct EmulatorLaunch {
  std::string entry;
  uint32_t blocks = 1, threads = 32, cluster = 1;
  uint64_t sharedBytes = 0;
  std::vector<EmulatorTensorMap> maps = {};
};

struct EmulatorBinding {
  std::string name;
  void *data;
  size_t bytes;
};

struct EmulatorCounts {
  uint64_t bankConflicts = 0, sharedPasses = 0, multiplyAdds = 0, instructions = 0;
};

class EmulatorDevice {
public:
  explicit EmulatorDevice(const std::string &ptx);
  ~EmulatorDevice();
  /// Runs the launches in order. The arguments of each launch are the bindings, followed by
  /// `scratchBytes` bytes of uninitialised memory. Returns an error, or an empty text on success.
  std::string run(const std::vector<EmulatorLaunch> &launches,
                  const std::vector<EmulatorBinding> &bindings, size_t scratchBytes,
                  EmulatorCounts &counts);

private:
  struct State;
  std::unique_ptr<State> state;
  std::string problem; ///< text of an error in the PTX, or empty
};

#endif // FSDP_TOOLS_KERNELTEST_EMULATORDEVICE_H
