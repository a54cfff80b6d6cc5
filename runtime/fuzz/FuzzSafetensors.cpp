//===- FuzzSafetensors.cpp - Fuzz the reader of safetensors -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the input as a safetensors file, and as an index of several such files.
//
//===----------------------------------------------------------------------===//

#include "fuzz/Fuzzing.h"
#include "io/Safetensors.h"
#include <vector>

using namespace fsdprt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile file;
  file.write(data, size);
  fuzz::tryToRead([] {
    SafetensorsFile weights(file.getPath());
    for (const auto &[name, tensor] : weights.getTensors()) {
      std::vector<std::byte> bytes(tensor.end - tensor.begin);
      weights.read(tensor, 0, bytes.data(), bytes.size());
    }
  });
  fuzz::tryToRead([] { readSafetensorsIndex(file.getPath()); });
  return 0;
}
