//===- Fuzzing.h - What the fuzz targets share ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A target is one function, which libFuzzer calls with one input after another. A reader must
// either accept the input or throw an Error whose message a terminal can show.
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

/// Ends the process if the text is empty, longer than 16 KiB, or has control characters. libFuzzer
/// then reports the input.
void expectReadable(const std::string &message);

#ifdef __cpp_exceptions // parts of the compiler are built without exceptions

/// Calls `body`. An Error is allowed if its message is readable.
template <typename Body>
void tryToRead(Body body) {
  try {
    body();
  } catch (const Error &error) {
    expectReadable(error.message);
  }
}
#endif

/// A file in memory. Readers open it by its path.
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
