//===- InputFile.h - An input file that may change while in use ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file is opened once and read through that descriptor, so that another file renamed to the
// path has no effect. Bytes are copied by pread(2) instead of mapped: if another process truncated
// a mapped file, an access would end in SIGBUS. Size, modification time and change time are
// recorded at opening, so that one fstat(2) detects a rewrite in place.
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
  /// comparison() hashes all bytes of a file of at most `wholeLimit` bytes. Of a larger file it
  /// hashes `sampleBlocks` blocks of `sampleBlockBytes` bytes.
  static constexpr uint64_t wholeLimit = uint64_t(2) << 30, sampleBlocks = 4096,
                            sampleBlockBytes = 64 << 10;

  InputFile() = default;
  /// Opens a regular file; throws Error for other files. A pipe or device is refused without
  /// waiting for its other end. `what` names the file in errors, as in "the weights".
  InputFile(const std::string &path, const char *what);
  ~InputFile();
  InputFile(InputFile &&other) noexcept { *this = std::move(other); }
  InputFile &operator=(InputFile &&other) noexcept;

  const std::string &getPath() const { return path; }
  uint64_t size() const { return version.size; }

  /// Copies `bytes` bytes from `offset`. Throws InputChanged if the file has been truncated.
  /// Allocates no memory unless it throws.
  void read(uint64_t offset, void *into, size_t bytes) const;
  /// Returns the whole content. Throws Error, before it allocates memory, if the file has more than
  /// `most` bytes.
  std::string readAll(uint64_t most) const;

  /// Throws InputChanged if size or modification time have changed since opening. With `strictly`,
  /// also throws if the change time has changed, except through the removal of a name. Allocates no
  /// memory unless it throws.
  void expectUnchanged(bool strictly = false) const;
  /// Does the same as expectUnchanged(), for a file that is in use for a long time. If only the
  /// change time differs, as after chmod(1) or a rewrite that restored the modification time, the
  /// content is compared. `content` is the result of comparison() at opening.
  void expectContent(const std::string &content) const;

  /// Returns the SHA-256 of all bytes as hexadecimal digits. Throws InputChanged.
  std::string sha256() const;
  /// Returns text that is equal for equal content, for comparison between processes. Up to
  /// wholeLimit it is the SHA-256 of all bytes; for a larger file, the size and the SHA-256 of
  /// evenly spaced blocks.
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
  mutable Version version; // expectContent() updates the change time if the content is equal
};

} // namespace fsdprt

#endif // FSDPRT_IO_INPUTFILE_H
