//===- NpyHeader.h - Headers of .npy files ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     | \x93NUMPY | u8 major | u8 minor | u16 or u32 N | N bytes: Python dictionary | elements |
//
//     {'descr': '<i8', 'fortran_order': False, 'shape': (64, 128), }
//
// Reading is strict, because sizes come from an untrusted file: versions 1 to 3; N at most 65,536
// and within the file; the three keys above, each once; at most 32 dimensions; elements of one
// little-endian number type, in C order, which fill the rest of the file.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_NPYHEADER_H
#define FSDPRT_IO_NPYHEADER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

/// Describes an array in a file.
struct StoredArray {
  std::string dtype; ///< in the spelling of safetensors: "F32", "I64", "BOOL", ...
  std::vector<uint64_t> shape;
  uint64_t begin = 0; ///< byte offset of its elements in the file
};

/// Returns true if the bytes begin with numpy's magic number.
bool isNpy(const std::byte *data, uint64_t size);

/// Most bytes at a file's beginning that readNpyHeader() needs.
inline constexpr uint64_t mostNpyHeaderBytes = 12 + (1 << 16);

/// Parses the header of a file of `fileBytes` bytes. `data` holds all of it, or its first
/// mostNpyHeaderBytes. Throws Error if the header is malformed or does not fit the file; `path` is
/// for messages.
StoredArray readNpyHeader(const std::string &path, const std::byte *data, uint64_t fileBytes);

} // namespace fsdprt

#endif // FSDPRT_IO_NPYHEADER_H
