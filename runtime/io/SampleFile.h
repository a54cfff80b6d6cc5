//===- SampleFile.h - Samples of one input in a file ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file's leading dimension counts samples ("rows"); the others are those of a sample:
//
//     input 'images': 4x3x32x32 in f32     file: Nx3x32x32 in F64, F32, F16 or BF16
//     input 'labels': 4 in i64             file: N in any integers
//
// Formats, told by content: .npy; safetensors (the tensor of the input's name, or the only one);
// else raw little-endian elements of the input's type. Floats are converted to the input's type,
// integers keep their values. All elements are checked when the file is opened: what the input's
// type does not hold, and ids outside of the input's limit, are refused with their place.
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
  /// Opens a file of samples of shape `row`. Throws Error.
  SampleFile(const std::string &path, const fsdprt_input_info &info, std::vector<uint64_t> row);

  const std::string &getPath() const { return path; }
  uint64_t getRows() const { return rows; }
  /// Writes the elements of a row, in the input's type. Throws InputChanged. Allocates nothing
  /// unless it throws.
  void copyRow(uint64_t row, std::byte *to) const;
  const InputFile &getFile() const { return tensors ? tensors->getFile() : file; }
  /// Throws InputChanged when the file is not what it was when it was opened. Allocates nothing
  /// unless it was touched.
  void expectUnchanged() const { getFile().expectContent(content); }
  /// Returns what processes compare to know that they have the same samples: see InputFile.
  const std::string &comparison() const { return content; }
  /// Returns the hash of the whole file, in hexadecimal digits.
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
  InputFile file;                           ///< none where `tensors` has it
  std::unique_ptr<SafetensorsFile> tensors; ///< null in other formats
  std::string content;                      ///< at opening
  StoredArray array;
  std::vector<uint64_t> row;
  uint64_t rows = 0, elements = 1;       ///< samples; elements of one
  DType type = DType::f32;               ///< of the input
  uint32_t width = 0;                    ///< bytes of an element in the file
  bool isSigned = false;                 ///< integers of the file
  bool isCopied = false;                 ///< the file has the input's type
  mutable std::vector<std::byte> stored; ///< a row as the file has it, where it is converted
};

} // namespace fsdprt

#endif // FSDPRT_IO_SAMPLEFILE_H
