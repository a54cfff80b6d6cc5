//===- InputFile.h - An input file that may change while in use ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A file is opened once and read through one descriptor. If rename(2) replaces the file, the reader
// therefore still reads the original file. Bytes are copied by pread(2) and not mapped, because an
// access to a mapped file that another process has truncated raises SIGBUS. Size, modification time
// and change time are recorded at opening, so fstat(2) detects a file that was rewritten in place.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_INPUTFILE_H
#define FSDPRT_IO_INPUTFILE_H

#include "core/Error.h"
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

namespace fsdprt {

/// Thrown if a file has changed since it was opened.
struct InputChanged : Error {
  explicit InputChanged(const std::string &message) : Error(FSDPRT_FAILED, message) {}
};

class InputFile {
public:
  /// If a file has at most `wholeLimit` bytes, comparison() hashes all bytes. Otherwise it hashes
  /// only `sampleBlocks` blocks of `sampleBlockBytes` bytes.
  static constexpr uint64_t wholeLimit = uint64_t(2) << 30, sampleBlocks = 4096,
                            sampleBlockBytes = 64 << 10;

  InputFile() = default;
  /// Opens a regular file. Throws Error for other files, such as pipes and devices, without
  /// waiting. Messages describe the file as `what`, for example "the weights".
  InputFile(const std::string &path, const char *what);
  ~InputFile();
  InputFile(InputFile &&other) noexcept { *this = std::move(other); }
  InputFile &operator=(InputFile &&other) noexcept;

  const std::string &getPath() const { return path; }
  uint64_t size() const { return version.size; }

  /// Copies `bytes` bytes, from byte `offset` of the file, to `into`. Throws InputChanged if the
  /// file has been truncated. Allocates no memory unless it throws.
  void read(uint64_t offset, void *into, size_t bytes) const;
  /// Returns the whole content. Throws Error before allocating memory if the file has more than
  /// `most` bytes.
  std::string readAll(uint64_t most) const;

  /// Throws InputChanged if the size or the modification time has changed since opening. If
  /// `strictly` is true, also throws if the change time has changed while the number of hard links
  /// is the same. Allocates no memory unless it throws.
  void expectUnchanged(bool strictly = false) const;
  /// Throws InputChanged if the size or the modification time has changed since opening. If only
  /// the change time has changed, for example by chmod(1), throws if the result of comparison()
  /// differs from `content`, which was the result at opening.
  void expectContent(const std::string &content) const;

  /// Returns the SHA-256 of all bytes as hexadecimal digits. Throws InputChanged if the file has
  /// been truncated.
  std::string sha256() const;
  /// Returns a text with the size and a SHA-256, so that processes can compare contents. The
  /// SHA-256 is of all bytes if the file has at most wholeLimit bytes, and otherwise of evenly
  /// spaced blocks.
  std::string comparison() const;
  bool isCompared() const { return size() <= wholeLimit; }

private:
  struct Version {
    uint64_t size = 0, names = 0;
    timespec modified = {}, changed = {};
  };
  Version look() const;
  [[noreturn]] void refuseChange(const Version &now) const;

  std::string path;
  int file = -1;
  /// Size and times of the file at opening. If only the change time has changed since then and the
  /// content has not, expectContent() stores the new times.
  mutable Version version;
};

} // namespace fsdprt

#endif // FSDPRT_IO_INPUTFILE_H
