//===- TokenFile.h - Tokens on disk -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Formats: raw little-endian ids of 1, 2 or 4 bytes; llm.c's, 256 x int32 of header
// (magic 20240520 version 1: uint16; magic 20240801 version 7: uint32; the number of
// tokens) and then ids; text, whose bytes are the ids. The whole file is read once when
// it is opened: an id that the model has no row for is refused with its place. Later reads
// go to the same descriptor; whether the file has changed since is for the caller to ask.
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
  /// `limit`: ids are in [0, limit). automatic: the header's, else the narrowest type that holds
  /// the limit.
  TokenFile(const std::string &path, TokenType type, uint64_t limit);

  uint64_t size() const { return count; }
  const char *typeName() const { return width == 1 ? "uint8" : width == 2 ? "uint16" : "uint32"; }
  bool hasHeader() const { return begin != 0; }
  /// Copies `count` ids from number `first` on to `ids`. Throws InputChanged. Allocates nothing
  /// unless it throws.
  void read(uint64_t first, uint64_t count, uint32_t *ids) const;
  uint32_t operator[](uint64_t index) const;
  const InputFile &getFile() const { return file; }
  /// Throws InputChanged when the file is not what it was when it was opened. Allocates nothing
  /// unless it was touched.
  void expectUnchanged() const { file.expectContent(content); }
  /// Returns what processes compare to know that they have the same tokens: see InputFile.
  const std::string &comparison() const { return content; }
  /// Returns the hash of the whole file, in hexadecimal digits.
  std::string sha256() const;

private:
  void readHeader(const std::string &path);
  template <typename Id>
  void checkIds(const std::string &path, uint64_t limit) const;

  InputFile file;
  std::string content;           // at opening
  uint64_t begin = 0, count = 0; // bytes of header, tokens
  uint32_t width = 1;
};

} // namespace fsdprt

#endif // FSDPRT_IO_TOKENFILE_H
