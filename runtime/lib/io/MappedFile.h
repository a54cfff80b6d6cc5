//===- MappedFile.h - A file as memory --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Read-only. The file must not be shortened while it is in use.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_MAPPEDFILE_H
#define FSDPRT_IO_MAPPEDFILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace fsdprt {

class MappedFile {
public:
  MappedFile() = default;
  /// Throws Error; `what` is for its text ("the weights").
  MappedFile(const std::string &path, const char *what);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(bytes, other.bytes);
    std::swap(length, other.length);
    return *this;
  }

  const std::byte *data() const { return bytes; }
  uint64_t size() const { return length; }

private:
  const std::byte *bytes = nullptr;
  uint64_t length = 0;
};

} // namespace fsdprt

#endif // FSDPRT_IO_MAPPEDFILE_H
