//===- SampleFile.cpp - A file with samples of one input --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// copyRow() copies the bytes of a row if the elements of the file have the input's type. Otherwise
// copyRow() converts floats to f64 and then to the input's type, and integers to int64_t and then
// to the input's type.
//
//===----------------------------------------------------------------------===//

#include "io/SampleFile.h"
#include "core/Error.h"
#include "core/HashText.h"
#include "io/Safetensors.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace fsdprt;
using ull = unsigned long long;
using ll = long long;

static const char *fileNameOf(DType type) {
  static const char *const names[] = {"F64", "F32", "F16", "BF16", "I64",
                                      "I32", "I16", "I8",  "BOOL"};
  return names[static_cast<int>(type)];
}

/// Sets `type` to the floating-point type that safetensors calls `name`. Returns false if no such
/// type exists.
static bool floatOf(const std::string &name, DType &type) {
  for (DType known : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (name == fileNameOf(known)) {
      type = known;
      return true;
    }
  return false;
}

static bool isInteger(const std::string &name) {
  return name.size() >= 2 && (name[0] == 'I' || name[0] == 'U') && name[1] >= '1' && name[1] <= '9';
}

/// Returns the integer of `width` bytes at `from`. Unsigned values above 2^63 - 1 become negative.
/// checkIntegers() refuses such negative values.
static int64_t loadAny(uint32_t width, bool isSigned, const std::byte *from) {
  switch (width) {
  case 1:
    return isSigned ? int64_t(loadInteger<int8_t>(from)) : int64_t(loadInteger<uint8_t>(from));
  case 2:
    return isSigned ? int64_t(loadInteger<int16_t>(from)) : int64_t(loadInteger<uint16_t>(from));
  case 4:
    return isSigned ? int64_t(loadInteger<int32_t>(from)) : int64_t(loadInteger<uint32_t>(from));
  default:
    return loadInteger<int64_t>(from);
  }
}

std::string SampleFile::shapeText(const std::string &first,
                                  const std::vector<uint64_t> &rest) const {
  std::string text = first;
  for (uint64_t dim : rest)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "a scalar" : text;
}

SampleFile::SampleFile(const std::string &path, const fsdprt_input_info &info,
                       std::vector<uint64_t> row)
    : path(path), file(path, "samples"), row(std::move(row)), type(static_cast<DType>(info.dtype)) {
  for (uint64_t dim : this->row)
    // The number of elements does not overflow, because Artifact::open() has checked the size in
    // bytes.
    elements *= dim;
  if (file.size() == 0)
    badInput("%s: input '%s' expected samples, found an empty file", path.c_str(),
             printable(info.name).c_str());
  content = file.comparison();
  readHeader(info);
  checkShape(info);
  checkType(info);
  checkElements(info);
  if (!isCopied)
    stored.resize(elements * width);
}

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void SampleFile::readHeader(const fsdprt_input_info &info) {
  std::vector<std::byte> begin(std::min(file.size(), mostNpyHeaderBytes));
  file.read(0, begin.data(), begin.size());
  if (isNpy(begin.data(), begin.size())) {
    array = readNpyHeader(path, begin.data(), file.size());
  } else if (endsWith(path, ".safetensors")) {
    readSafetensors(info.name);
  } else if (endsWith(path, ".npy")) {
    badInput("%s: expected an .npy file, which begins with the bytes 93 4E 55 4D 50 59",
             path.c_str());
  } else { // the elements are not preceded by a header
    uint64_t each = elements * sizeOf(type);
    if (each == 0 || file.size() % each != 0)
      badInput("%s: input '%s' expected a raw file of a multiple of %llu bytes, for samples of %s "
               "in %s, found %llu bytes",
               path.c_str(), printable(info.name).c_str(), (ull)each, shapeText("", row).c_str(),
               fileNameOf(type), (ull)file.size());
    array = {fileNameOf(type), {file.size() / each}, 0};
    array.shape.insert(array.shape.end(), row.begin(), row.end());
  }
  width = safetensorsSize(array.dtype);
  isSigned = array.dtype[0] == 'I';
}

/// Selects the tensor with the input's name or, if none exists, the only tensor of the file.
void SampleFile::readSafetensors(const std::string &name) {
  tensors = std::make_unique<SafetensorsFile>(std::move(file));
  const auto &known = tensors->getTensors();
  auto found = known.find(name);
  if (found == known.end() && known.size() == 1)
    found = known.begin();
  if (found == known.end())
    badInput("%s: expected a tensor '%s', or one tensor alone, found %llu without that name",
             path.c_str(), printable(name).c_str(), (ull)known.size());
  array = {found->second.dtype, found->second.shape, tensors->offsetOf(found->second)};
}

void SampleFile::checkShape(const fsdprt_input_info &info) {
  std::vector<uint64_t> found(array.shape);
  bool hasRows = !found.empty();
  if (hasRows) {
    rows = found[0];
    found.erase(found.begin());
  }
  if (!hasRows || found != row || rows == 0)
    badInput("%s: input '%s' expected a file of shape %s, N samples of at least 1, found %s",
             path.c_str(), printable(info.name).c_str(), shapeText("N", row).c_str(),
             shapeText("", array.shape).c_str());
}

void SampleFile::checkType(const fsdprt_input_info &info) {
  DType from = DType::f32;
  bool fits = isFloat(type) ? floatOf(array.dtype, from)
              : type == DType::i1
                  ? array.dtype == "BOOL" || array.dtype == "U8" || array.dtype == "I8"
                  : isInteger(array.dtype);
  if (!fits)
    badInput("%s: input '%s' is of %s: expected a file of %s, found %s", path.c_str(),
             printable(info.name).c_str(), nameOf(type),
             isFloat(type)       ? "F64, F32, F16 or BF16"
             : type == DType::i1 ? "BOOL, or of U8 or I8 that are 0 or 1"
                                 : "integers",
             array.dtype.c_str());
  isCopied = array.dtype == fileNameOf(type) || (type == DType::i1 && width == 1);
}

/// Calls each(index, bytes) for each element of the file. Reads the file in chunks.
template <typename Each>
void SampleFile::forElements(Each each) const {
  constexpr uint64_t partElements = 1 << 17;
  uint64_t all = rows * elements;
  std::vector<std::byte> part(std::min(all, partElements) * width);
  for (uint64_t first = 0, count; first < all; first += count) {
    count = std::min(all - first, partElements);
    getFile().read(array.begin + first * width, part.data(), count * width);
    for (uint64_t i = 0; i < count; ++i)
      each(first + i, part.data() + i * width);
  }
}

void SampleFile::checkElements(const fsdprt_input_info &info) const {
  if (!isFloat(type))
    return checkIntegers(info);
  DType from = DType::f32;
  if (isCopied || !floatOf(array.dtype, from) || sizeOf(from) < sizeOf(type))
    return;
  forElements([&](uint64_t i, const std::byte *element) {
    std::byte narrow[8];
    double value = loadElement(from, element);
    storeElement(type, value, narrow);
    if (std::isfinite(value) && !std::isfinite(loadElement(type, narrow)))
      badInput("%s: element %llu, %g, is too large for input '%s' of %s", path.c_str(), (ull)i,
               value, printable(info.name).c_str(), nameOf(type));
  });
}

/// Throws Error if the input's type cannot represent an integer of the file, or if an id is neither
/// below the input's limit nor an extra id.
void SampleFile::checkIntegers(const fsdprt_input_info &info) const {
  int64_t bits = type == DType::i1 ? 1 : int64_t(8 * sizeOf(type));
  int64_t most = type == DType::i1 ? 1 : std::numeric_limits<int64_t>::max() >> (64 - bits);
  int64_t least = type == DType::i1 ? 0 : -most - 1;
  if (info.limit) {
    most = static_cast<int64_t>(std::min<uint64_t>(info.limit - 1, most));
    least = 0;
  }
  // loadAny() returns negative numbers for u64 values above 2^63 - 1.
  bool isHuge = array.dtype == "U64";
  const int64_t *extraEnd = info.extra_ids + info.num_extra_ids;
  forElements([&](uint64_t i, const std::byte *element) {
    int64_t value = loadAny(width, isSigned, element);
    if (value >= least && value <= most && !(isHuge && value < 0))
      return;
    if (isHuge || std::find(info.extra_ids, extraEnd, value) == extraEnd)
      badInput(
          "%s: element %llu of sample %llu: input '%s' expected %s in [%lld, %lld], found %lld",
          path.c_str(), (ull)(i % elements), (ull)(i / elements), printable(info.name).c_str(),
          info.limit ? "an id" : "an integer", (ll)least, (ll)most, (ll)value);
  });
}

void SampleFile::convert(const std::byte *from, std::byte *to) const {
  DType stored = DType::f32;
  bool isFloating = floatOf(array.dtype, stored);
  uint64_t size = sizeOf(type);
  for (uint64_t i = 0; i < elements; ++i, from += width, to += size) {
    if (isFloating) {
      storeElement(type, loadElement(stored, from), to);
      continue;
    }
    int64_t value = loadAny(width, isSigned, from);
    std::memcpy(to, &value, size); // copies the low bytes (little-endian)
  }
}

void SampleFile::copyRow(uint64_t index, std::byte *to) const {
  uint64_t bytes = elements * width;
  getFile().read(array.begin + index * bytes, isCopied ? to : stored.data(), bytes);
  if (!isCopied)
    convert(stored.data(), to);
}
