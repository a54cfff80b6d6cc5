//===- Image.h - Compiled kernels in memory ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads the ELF shared object with the kernels of an artifact. Does not use the loader of the
// system, which trusts its input and runs initialisers. Instead checks every offset, runs no code,
// and refuses files with features that kernels do not need.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_IMAGE_H
#define FSDPRT_ARTIFACT_IMAGE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace fsdprt {

class Image {
public:
  Image() = default;
  /// Copies and loads the image of `size` bytes at `bytes`. On failure, throws Error with `file` in
  /// its message.
  Image(const std::string &file, const std::byte *bytes, size_t size);
  ~Image();
  Image(const Image &) = delete;
  Image &operator=(const Image &) = delete;

  /// Returns the address of the function `name`, or null if no such function exists.
  const void *function(const std::string &name) const;
  struct Words {
    const uint64_t *data = nullptr;
    size_t size = 0;
  };
  /// Returns the content of the data object `name` as 64-bit words. Returns no words if the object
  /// does not exist or is not aligned to 8 bytes.
  Words words(const std::string &name) const;

private:
  friend class ImageLoader;
  std::byte *base = nullptr;
  size_t span = 0;
  struct Object {
    uint64_t offset, bytes;
  };
  std::map<std::string, uint64_t> functions; ///< offset of each function from `base`
  std::map<std::string, Object> objects;
};

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_IMAGE_H
