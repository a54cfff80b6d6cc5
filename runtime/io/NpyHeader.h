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
// Because the file is untrusted, readNpyHeader() checks that `major` is 1 to 3, that N is at most
// 65,536, and that N bytes follow. The dictionary must have exactly the three keys of this example.
// The array must have at most 32 dimensions. The elements of the array must have a little-endian
// number type, be in C order, and fill the rest of the file.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_NPYHEADER_H
#define FSDPRT_IO_NPYHEADER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdprt {

struct StoredArray {
  std::string dtype; ///< name of the type in safetensors: "F32", "I64", "BOOL", ...
  std::vector<uint64_t> shape;
  uint64_t begin = 0; ///< byte offset of the elements in the file
};

/// Returns true if `data` begins with the magic number of .npy files.
bool isNpy(const std::byte *data, uint64_t size);

/// Largest number of bytes at the beginning of a file that readNpyHeader() needs.
inline constexpr uint64_t mostNpyHeaderBytes = 12 + (1 << 16);

/// Parses the header of a file of `fileBytes` bytes. `data` contains the first mostNpyHeaderBytes
/// bytes of the file, or the whole file if the file is shorter. Throws Error if the header is
/// malformed or contradicts the size of the file. `path` names the file in messages.
StoredArray readNpyHeader(const std::string &path, const std::byte *data, uint64_t fileBytes);

} // namespace fsdprt

#endif // FSDPRT_IO_NPYHEADER_H
