//===- RankFile.h - A rank's state in a file --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a plan keeps in a file lies in one without a name, so that it goes away with the process.
// Its room on the disk is taken when it is made: a disk that is full is found before the first
// step.
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
  /// In `directory`, of `bytes` that are zero. Throws Error where it cannot be made, or there is no
  /// room for it.
  RankFile(const std::string &directory, uint32_t rank, uint64_t bytes);
  ~RankFile();
  RankFile(const RankFile &) = delete;
  RankFile &operator=(const RankFile &) = delete;

  uint64_t bytes() const { return size; }
  /// Whether it bypasses the system's cache.
  bool isDirect() const { return direct; }

  /// Throw Error when not all of it could be moved. Of several threads, one after the other.
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
  std::mutex mutex; // of the bounce buffer
  std::unique_ptr<std::byte, void (*)(void *)> bounce;
};

/// TMPDIR, or /tmp.
std::string temporaryDirectory();

} // namespace fsdprt

#endif // FSDPRT_DEVICE_RANKFILE_H
