//===- RankFile.h - A file for a rank's offloaded state ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Offloaded states are in an unnamed file, which is freed when the process ends. The disk space is
// allocated when the file is created, so that a full disk is noticed before the first step.
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
  /// Creates a file in `directory` that contains `bytes` zeros. Throws Error if this fails, for
  /// example because the disk is full.
  RankFile(const std::string &directory, uint32_t rank, uint64_t bytes);
  ~RankFile();
  RankFile(const RankFile &) = delete;
  RankFile &operator=(const RankFile &) = delete;

  uint64_t bytes() const { return size; }
  bool isDirect() const { return direct; }

  /// read() copies a range of the file to memory, and write() copies memory to a range of the file.
  /// Both functions throw Error if they cannot copy all bytes. Any thread may call these functions.
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
  std::mutex mutex; ///< protects `bounce`
  std::unique_ptr<std::byte, void (*)(void *)> bounce;
};

/// Returns the value of TMPDIR, or "/tmp" if TMPDIR is not set.
std::string temporaryDirectory();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_RANKFILE_H
