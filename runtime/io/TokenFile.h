//===- TokenFile.h - Files of tokens ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A token file has one of three formats. The first format consists of raw little-endian ids of 1, 2
// or 4 bytes. The second format is a text in which each byte is an id. In the third format, of
// llm.c, a header of 256 values of type int32 precedes the ids. The first three values are a magic
// number, a version and the number of tokens. If the magic number is 20240520 and the version is 1,
// ids have 2 bytes. If the magic number is 20240801 and the version is 7, ids have 4 bytes.
//
// If an id is not below the limit, the constructor throws Error with the position of the id.
// expectUnchanged() detects whether the file has changed since it was opened.
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
  /// Opens a file and checks its ids. Throws Error if the file is invalid, or if `limit` is not 0
  /// and an id is not below `limit`. TokenType::automatic selects the type that the header
  /// determines or, without a header, the narrowest type that can represent all ids below `limit`.
  TokenFile(const std::string &path, TokenType type, uint64_t limit);

  uint64_t size() const { return count; }
  const char *typeName() const { return width == 1 ? "uint8" : width == 2 ? "uint16" : "uint32"; }
  bool hasHeader() const { return begin != 0; }
  /// Copies `count` ids, beginning with id `first` of the file, to `ids`. Throws InputChanged if
  /// the file has been truncated. Allocates no memory unless it throws.
  void read(uint64_t first, uint64_t count, uint32_t *ids) const;
  uint32_t operator[](uint64_t index) const;
  const InputFile &getFile() const { return file; }
  /// Throws InputChanged if the file has changed since it was opened. Allocates no memory unless
  /// the change time has changed.
  void expectUnchanged() const { file.expectContent(content); }
  /// Returns the result of InputFile::comparison() at opening.
  const std::string &comparison() const { return content; }
  std::string sha256() const;

private:
  void readHeader(const std::string &path);
  template <typename Id>
  void checkIds(const std::string &path, uint64_t limit) const;

  InputFile file;
  std::string content;
  uint64_t begin = 0, count = 0; ///< number of header bytes; number of tokens
  uint32_t width = 1;
};

} // namespace fsdprt

#endif // FSDPRT_IO_TOKENFILE_H
