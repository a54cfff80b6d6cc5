//===- RankFile.h - A file for a rank's offloaded state ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Offloaded state is in an unnamed file, which is freed when the process ends. The file's disk
// space is allocated at creation, so that a full disk is found before the first step.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_DEVICE_RANKFILE_H
#define FSDPRT_DEVICE_RANKFILE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace fsdprt {

class RankFile {
public:
  /// Creates a file of `bytes` zeros in `directory`. Throws Error if the file cannot be created or
  /// the disk is full.
  RankFile(const std::string &directory, uint32_t rank, uint64_t bytes);
  ~RankFile();
  RankFile(const RankFile &) = delete;
  RankFile &operator=(const RankFile &) = delete;

  uint64_t bytes() const { return size; }
  /// Returns true if I/O bypasses the page cache.
  bool isDirect() const { return direct; }

  /// Copy a range between file and memory. Throw Error if the copy is not complete. Calls by
  /// several threads run one after the other.
  void read(uint64_t offset, void *to, uint64_t bytes);
  void write(uint64_t offset, const void *from, uint64_t bytes);

private:
  struct Piece;
  void open();
  void preallocate();
  Piece nextPiece(uint64_t offset, const void *memory, uint64_t bytes) const;
  void readExactly(uint64_t offset, std::byte *to, uint64_t bytes);
  void checkWhole(uint64_t offset, uint64_t bytes) const;
  void writeExactly(uint64_t offset, const std::byte *from, uint64_t bytes);
  [[noreturn]] void fail(const char *doing, uint64_t offset, uint64_t bytes, int reason) const;

  std::string directory;
  uint32_t rank;
  uint64_t size;
  int file = -1;
  bool direct = false;
  std::mutex mutex; // protects the bounce buffer
  std::unique_ptr<std::byte, void (*)(void *)> bounce;
};

/// Returns $TMPDIR, or "/tmp".
std::string temporaryDirectory();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_RANKFILE_H
