//===- InputFile.h - A file that others may change while it is read -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file is opened once, and everything is read through that descriptor: a file that takes the
// name later is not seen. Bytes are copied by pread(2) and not mapped, because a mapped file that
// another process shortens ends the reader by SIGBUS. Size, modification time and change time are
// remembered at opening, so that a rewrite in place is noticed by one fstat(2).
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

/// The error of a file that is not what it was when it was opened.
struct InputChanged : Error {
  explicit InputChanged(const std::string &message) : Error(FSDPRT_FAILED, message) {}
};

class InputFile {
public:
  /// The largest file, in bytes, that comparison() reads as a whole, and the size of what it reads
  /// of a larger one.
  static constexpr uint64_t wholeLimit = uint64_t(2) << 30, sampleBlocks = 4096,
                            sampleBlockBytes = 64 << 10;

  InputFile() = default;
  /// Opens a regular file. Throws Error otherwise; a pipe or device is refused without waiting for
  /// its other end. `what` names the file in the error ("the weights").
  InputFile(const std::string &path, const char *what);
  ~InputFile();
  InputFile(InputFile &&other) noexcept { *this = std::move(other); }
  InputFile &operator=(InputFile &&other) noexcept;

  const std::string &getPath() const { return path; }
  uint64_t size() const { return version.size; }

  /// Copies `bytes` bytes from `offset`. Throws InputChanged when the file has become shorter.
  /// Allocates nothing unless it throws.
  void read(uint64_t offset, void *into, size_t bytes) const;
  /// Returns all bytes.
  std::string readAll() const;

  /// Throws InputChanged when size or modification time are not those of opening. `strictly`: or
  /// the time of the last change of any kind, unless that was the removal of a name. Allocates
  /// nothing unless it throws.
  void expectUnchanged(bool strictly = false) const;
  /// The same for a file that is in use for long: where only the time of the last change of any
  /// kind is another, as after chmod(1), or after a rewrite whose author set the modification time
  /// back, the content decides. `content` is what comparison() was at opening.
  void expectContent(const std::string &content) const;

  /// Returns the SHA-256 of all bytes, in hexadecimal digits. Throws InputChanged.
  std::string sha256() const;
  /// Returns what two processes compare to know that they have the same content: the SHA-256 of all
  /// bytes up to wholeLimit, beyond that the size and the SHA-256 of blocks that are spread evenly
  /// over the file.
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
  mutable Version version; // expectContent() takes over times of changes that changed no byte
};

} // namespace fsdprt

#endif // FSDPRT_IO_INPUTFILE_H
