//===- SampleFile.h - A file with samples of one input ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The leading dimension of the array in a file is the number of samples. A sample is called a row.
// The remaining dimensions are the dimensions of one sample:
//
//     input 'images': 4x3x32x32 in f32     file: Nx3x32x32 in F64, F32, F16 or BF16
//     input 'labels': 4 in i64             file: N in any integers
//
// A file is read as .npy or safetensors if its content has this format. All other files are read as
// little-endian elements of the input's type. A safetensors file must have a tensor with the
// input's name, or only one tensor. Floats are rounded to the input's type; integers keep their
// values. The constructor checks all elements. If the input's type cannot represent a value, or an
// id is not valid for the input, the constructor throws Error with the value's position.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_SAMPLEFILE_H
#define FSDPRT_IO_SAMPLEFILE_H

#include "core/DType.h"
#include "fsdprt/fsdprt.h"
#include "io/InputFile.h"
#include "io/NpyHeader.h"
#include "io/Safetensors.h"
#include <memory>

namespace fsdprt {

class SampleFile {
public:
  /// Opens a file for the input `info`, whose samples have the shape `row`. Throws Error.
  SampleFile(const std::string &path, const fsdprt_input_info &info, std::vector<uint64_t> row);

  const std::string &getPath() const { return path; }
  uint64_t getRows() const { return rows; }
  /// Writes the elements of a row, converted to the input's type, to `to`. Throws InputChanged if
  /// the file has been truncated. Allocates no memory unless it throws.
  void copyRow(uint64_t row, std::byte *to) const;
  const InputFile &getFile() const { return tensors ? tensors->getFile() : file; }
  /// Throws InputChanged if the file has changed since it was opened. Allocates no memory unless
  /// the change time has changed.
  void expectUnchanged() const { getFile().expectContent(content); }
  /// Returns the result of InputFile::comparison() at opening.
  const std::string &comparison() const { return content; }
  std::string sha256() const { return getFile().sha256(); }

private:
  void readHeader(const fsdprt_input_info &info);
  void readSafetensors(const std::string &name);
  void checkShape(const fsdprt_input_info &info);
  void checkType(const fsdprt_input_info &info);
  void checkElements(const fsdprt_input_info &info) const;
  void checkIntegers(const fsdprt_input_info &info) const;
  template <typename Each>
  void forElements(Each each) const;
  void convert(const std::byte *from, std::byte *to) const;
  std::string shapeText(const std::string &first, const std::vector<uint64_t> &rest) const;

  std::string path;
  InputFile file;                           ///< the file, unless `tensors` has opened it
  std::unique_ptr<SafetensorsFile> tensors; ///< the safetensors file; null for another format
  std::string content;
  StoredArray array;
  std::vector<uint64_t> row;
  uint64_t rows = 0, elements = 1;       ///< number of samples; number of elements of a sample
  DType type = DType::f32;               ///< type of the input
  uint32_t width = 0;                    ///< bytes per element in the file
  bool isSigned = false;                 ///< true if the file has signed integers
  bool isCopied = false;                 ///< true if rows need no conversion
  mutable std::vector<std::byte> stored; ///< bytes of a row before its conversion
};

} // namespace fsdprt

#endif // FSDPRT_IO_SAMPLEFILE_H
