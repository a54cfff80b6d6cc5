//===- Safetensors.h - Weights in the safetensors format --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     | u64 N | N bytes of JSON | tensors, end to end |
//
// Because the file is untrusted, SafetensorsFile checks that N is at most 100,000,000 and that N
// bytes follow. The JSON must be an object that begins at the first of these bytes and has no
// duplicate or unknown keys. Every number must be a non-negative integer. The size of a tensor must
// be the product of its shape and the size of its dtype. The tensors must fill the rest of the file
// without gaps or overlaps.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_SAFETENSORS_H
#define FSDPRT_IO_SAFETENSORS_H

#include "io/InputFile.h"
#include "io/OutputFile.h"
#include <map>
#include <string>
#include <vector>

namespace fsdprt {

struct Tensor {
  std::string dtype; // "F32", "BF16", ...
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0; ///< byte offsets from the end of the header
};

/// Returns the number of bytes of an element of type `dtype`, or 0 if the type is unknown.
uint32_t safetensorsSize(const std::string &dtype);

class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path)
      : SafetensorsFile(InputFile(path, "the weights")) {}
  explicit SafetensorsFile(InputFile opened);

  const std::string &getPath() const { return path; }
  const std::map<std::string, Tensor> &getTensors() const { return tensors; }
  const InputFile &getFile() const { return file; }
  /// Returns the offset of the tensor's first byte in the file.
  uint64_t offsetOf(const Tensor &tensor) const { return dataBegin + tensor.begin; }
  /// Copies `bytes` bytes to `into`, beginning with byte `offset` of the tensor. Throws
  /// InputChanged if the file has been truncated.
  void read(const Tensor &tensor, uint64_t offset, void *into, size_t bytes) const {
    file.read(offsetOf(tensor) + offset, into, bytes);
  }

private:
  void checkTiling() const;

  std::string path;
  InputFile file;
  uint64_t dataBegin = 0;
  std::map<std::string, Tensor> tensors;
};

/// Reads an index such as "model.safetensors.index.json", and returns the sorted distinct paths of
/// the files that the index names.
std::vector<std::string> readSafetensorsIndex(const std::string &path);

struct TensorEntry {
  std::string name, dtype;
  std::vector<uint64_t> shape;
};

/// Returns the bytes that precede the tensors in a file: the length of the header, and the header.
/// The header is padded, so that the number of returned bytes is a multiple of 8. Sorts `entries`
/// by descending element size, then by name. The caller must then write the data of the tensors in
/// the new order.
std::string safetensorsHeader(std::vector<TensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata);

/// Writes a file. The constructor sorts `entries`. The caller must then pass the data of all
/// tensors to write() in the sorted order. The final name does not exist before commit().
class SafetensorsWriter {
public:
  using Entry = TensorEntry;
  SafetensorsWriter(const std::string &path, std::vector<Entry> &entries);
  void write(const void *data, size_t size) { file.write(data, size); }
  void commit() { file.commit(); }

private:
  OutputFile file;
};

} // namespace fsdprt

#endif // FSDPRT_IO_SAFETENSORS_H
