//===- OutputFile.h - Files written completely or not at all ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks every result of write(2), and calls fsync(2) before close(2), so that a full disk causes
// an Error instead of a shorter file. If `atomic` is true, bytes are written to a temporary file in
// the same folder, and commit() renames this file to FILE. The name of the temporary file is
//
//     FILE.<16 hexadecimal digits>.tmp     8 digits are a hash of the host name, 8 are random
//
// Two processes that write the same FILE therefore have separate temporary files, and the file of
// the process that calls commit() last remains. If FILE is a symbolic link, rename(2) replaces the
// link and not its target.
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
  /// Removes the temporary file if commit() was not called.
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Throws Error if open() with these arguments would fail. Leaves no new files behind.
  static void expectWritable(const std::string &path, bool atomic);

  void open(const std::string &path, bool atomic);
  /// Creates a new file. Throws Error if `path` exists, even as a symbolic link.
  void openNew(const std::string &path);
  /// Opens an existing file and truncates it to its first `bytes` bytes. write() appends to these
  /// bytes.
  void openBehind(const std::string &path, uint64_t bytes);
  bool isOpen() const { return fd >= 0; }
  /// Writes `size` bytes. Throws Error. Allocates no memory unless it throws.
  void write(const void *data, size_t size);
  /// Flushes the file and closes it. Renames an atomic file to its final name. Throws Error.
  void commit();

private:
  [[noreturn]] void fail(const char *doing);
  void openName(const std::string &name, int flags);
  void openTemporary();
  std::string path, temporary; ///< final name; temporary name, or "" if not atomic
  int fd = -1;
  bool regular = false;
};

} // namespace fsdprt

#endif // FSDPRT_IO_OUTPUTFILE_H
