//===- FuzzSaveIndex.cpp - Fuzz the index of a save -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the correct hash at the end of the input, so that most inputs reach the checks of the
// content. If an index is accepted, it must be unchanged after it has been written and read again.
//
//===----------------------------------------------------------------------===//

#include "fuzz/Fuzzing.h"
#include "train/SaveIndex.h"
#include <cstdlib>

using namespace fsdprt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  // After the 64 digits of the hash, the file ends with a quote, a newline, a brace and a newline.
  constexpr size_t digits = 64, afterDigits = 4;
  if (size > digits + afterDigits) {
    size_t at = size - digits - afterDigits;
    text.replace(at, digits, digits, '0');
    text.replace(at, digits, sha256Text(text.data(), text.size()));
  }
  fuzz::tryToRead([&] {
    SaveIndex index = readIndex("index.json", text);
    SaveIndex again = readIndex("index.json", writeIndex(index));
    if (!again.hasLayoutOf(index) || again.run.step != index.run.step ||
        again.run.rate.lr != index.run.rate.lr)
      std::abort();
  });
  return 0;
}
