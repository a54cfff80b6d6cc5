//===- Fuzzing.h - What the fuzz targets share ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A fuzz target is one function, which libFuzzer calls with one input after another. The tested
// reader must accept the input or throw an Error whose message has only printable characters.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_FUZZ_FUZZING_H
#define FSDPRT_FUZZ_FUZZING_H

#include "core/Error.h"
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fsdprt::fuzz {

/// Ends the process, so that libFuzzer reports the input, if `message` is empty, has more than 16
/// KiB, or contains control characters.
void expectReadable(const std::string &message);

#ifdef __cpp_exceptions // parts of the compiler are built without exceptions

/// Calls `body`, which may throw an Error that has a readable message.
template <typename Body>
void tryToRead(Body body) {
  try {
    body();
  } catch (const Error &error) {
    expectReadable(error.message);
  }
}
#endif

/// A file in memory. The tested reader opens the file by its path.
class MemoryFile {
public:
  MemoryFile();
  ~MemoryFile();
  void write(const void *data, size_t size);
  const std::string &getPath() const { return path; }

private:
  int file;
  std::string path;
};

} // namespace fsdprt::fuzz

#endif // FSDPRT_FUZZ_FUZZING_H
