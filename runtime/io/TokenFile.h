//===- TokenFile.h - Files of tokens ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats: raw little-endian ids of 1, 2 or 4 bytes; text, whose bytes are the ids; and the format
// of llm.c. The latter has a header of 256 x int32 (magic 20240520 version 1: uint16; magic
// 20240801 version 7: uint32; number of tokens), then the ids. When the file is opened, all ids are
// checked against the limit; the error names the position of an id out of range. Later reads use
// the same descriptor. The caller checks with expectUnchanged() whether the file has changed.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_TOKENFILE_H
#define FSDPRT_IO_TOKENFILE_H

#include "io/InputFile.h"
#include <cstdint>
#include <string>

namespace fsdprt {

enum class TokenType { automatic, u8, u16, u32 };

class TokenFile {
public:
  TokenFile() = default;
  /// Opens a file. Ids must be in [0, limit); limit 0 means no limit. The type `automatic` selects
  /// the type that the header names, or without a header the narrowest type for the limit. Throws
  /// Error.
  TokenFile(const std::string &path, TokenType type, uint64_t limit);

  uint64_t size() const { return count; }
  const char *typeName() const { return width == 1 ? "uint8" : width == 2 ? "uint16" : "uint32"; }
  bool hasHeader() const { return begin != 0; }
  /// Copies `count` ids, starting at index `first`, to `ids`. Throws InputChanged. Allocates no
  /// memory unless it throws.
  void read(uint64_t first, uint64_t count, uint32_t *ids) const;
  uint32_t operator[](uint64_t index) const;
  const InputFile &getFile() const { return file; }
  /// Throws InputChanged if the file has changed since it was opened. Allocates no memory unless
  /// its change time differs.
  void expectUnchanged() const { file.expectContent(content); }
  /// Returns text for comparing the tokens between processes; see InputFile::comparison().
  const std::string &comparison() const { return content; }
  /// Returns the SHA-256 of the whole file as hexadecimal digits.
  std::string sha256() const;

private:
  void readHeader(const std::string &path);
  template <typename Id>
  void checkIds(const std::string &path, uint64_t limit) const;

  InputFile file;
  std::string content;           // comparison() at opening
  uint64_t begin = 0, count = 0; // bytes of the header; number of tokens
  uint32_t width = 1;
};

} // namespace fsdprt

#endif // FSDPRT_IO_TOKENFILE_H
