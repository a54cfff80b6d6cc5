//===- FuzzImage.cpp - Fuzz the loader of kernel images ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//===----------------------------------------------------------------------===//

#include "artifact/Image.h"
#include "fuzz/Fuzzing.h"

using namespace fsdprt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::tryToRead([&] {
    Image image("fuzz.fsdp", reinterpret_cast<const std::byte *>(data), size);
    Image::Words words = image.words("toy_add.launch");
    volatile uint64_t sum = 0;
    for (size_t i = 0; i < words.size; ++i)
      sum = sum + words.data[i];
    image.function("toy_add");
  });
  return 0;
}
