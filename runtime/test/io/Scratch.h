//===- Scratch.h - Temporary files of a test -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_IO_SCRATCH_H
#define FSDPRT_TEST_IO_SCRATCH_H

#include "core/Error.h"
#include "testing/toy/ToyModel.h"
#include <functional>
#include <string>
#include <unistd.h>

namespace fsdprt::test {

/// A file of a test in the build folder. The destructor removes the file.
struct Scratch {
  std::string path;
  Scratch()
      : path(FSDPRT_SCRATCH "/io." + std::to_string(getpid()) + "." + std::to_string(counter++)) {}
  Scratch(const void *data, size_t size) : Scratch() { writeFile(path, data, size); }
  explicit Scratch(const std::string &text) : Scratch(text.data(), text.size()) {}
  ~Scratch() { unlink(path.c_str()); }

private:
  static inline int counter = 0;
};

/// Returns the error message of `body`, or "" if `body` succeeds.
inline std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.message;
  }
  return "";
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_IO_SCRATCH_H
