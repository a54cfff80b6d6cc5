//===- Safetensors.h - Weights in the safetensors format --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     | u64 N | N bytes of JSON | tensors, end to end |
//
// Reading is strict, because sizes come from an untrusted file. N is at most 100,000,000 and within
// the file. The JSON is an object that begins at the first byte, without duplicate or unknown keys.
// Every number is a non-negative integer. The bytes of a tensor equal those of its shape and dtype,
// without overflow. Sorted by offset, the tensors fill the rest of the file without gaps or
// overlaps.
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
  uint64_t begin = 0, end = 0; // byte offsets from the end of the header
};

/// Returns the bytes per element of a dtype, or 0 for an unknown dtype.
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
  /// Copies `bytes` bytes of the tensor from its byte `offset`. Throws InputChanged.
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

/// Returns the sorted paths of the files that a "model.safetensors.index.json" names, without
/// duplicates.
std::vector<std::string> readSafetensorsIndex(const std::string &path);

/// Describes a tensor to be written.
struct TensorEntry {
  std::string name, dtype;
  std::vector<uint64_t> shape;
};

/// Returns the bytes before the tensors: the length, and the header, padded to a multiple of 8.
/// Sorts `entries` by descending width of their dtypes, then by name. The tensors' data must follow
/// in this order.
std::string safetensorsHeader(std::vector<TensorEntry> &entries,
                              const std::map<std::string, std::string> &metadata);

/// Writes tensors one after the other, in the order of safetensorsHeader(). The file appears under
/// its name, complete, when commit() returns.
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
