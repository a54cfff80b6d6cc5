//===- OutputFile.h - Files written completely or not at all ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every result of write(2) is checked and fsync is called before close, so that a full disk is an
// error and not a shorter file. With `atomic`, bytes go to a new file in the same folder,
//
//     FILE.<16 hexadecimal digits>.tmp     8 for the machine's name, 8 random
//
// which is renamed at the end. So two processes that write one FILE have separate temporary files,
// and the process that finishes last replaces the other's file. Symbolic links are not followed:
// not at the temporary name, and not at the final name, because rename(2) replaces a link.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_OUTPUTFILE_H
#define FSDPRT_IO_OUTPUTFILE_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdprt {

class OutputFile {
public:
  OutputFile() = default;
  OutputFile(const std::string &path, bool atomic) { open(path, atomic); }
  /// Removes an atomic file that was not committed.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Throws Error if open() with these arguments would fail. Leaves no file behind.
  static void expectWritable(const std::string &path, bool atomic);

  /// Opens or creates a file. Throws Error.
  void open(const std::string &path, bool atomic);
  /// Creates a new file. Throws Error if the name exists, even as a symbolic link.
  void openNew(const std::string &path);
  /// Opens a file without `atomic`, truncates it to its first `bytes` bytes, and appends to them.
  void openBehind(const std::string &path, uint64_t bytes);
  bool isOpen() const { return fd >= 0; }
  /// Writes `size` bytes. Throws Error. Allocates no memory unless it throws.
  void write(const void *data, size_t size);
  /// Flushes the file to disk, closes it, and renames it if it is atomic. Throws Error.
  void commit();

private:
  [[noreturn]] void fail(const char *doing);
  void openName(const std::string &name, int flags);
  void openTemporary();
  std::string path, temporary; // temporary: empty if not atomic
  int fd = -1;
  bool regular = false;
};

} // namespace fsdprt

#endif // FSDPRT_IO_OUTPUTFILE_H
