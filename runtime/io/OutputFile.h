//===- OutputFile.h - Files that are written whole or not at all -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// write(2) on a descriptor, every result looked at, fsync before close: a full disk
// is an error and not a shorter file. With 'atomic', bytes go to a new file beside it,
//
//     FILE.<16 hexadecimal digits>.tmp     8 of the machine's name, 8 random
//
// which takes the name in the end. Two processes that write one FILE so have a temporary
// file each, and the one that ends last leaves its own, whole. No symbolic link is followed:
// neither one with the temporary name, nor, since rename(2) replaces it, one with the name.
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

  /// Throws Error unless `open` with these arguments would do. Leaves nothing behind.
  static void expectWritable(const std::string &path, bool atomic);

  /// Throws Error.
  void open(const std::string &path, bool atomic);
  /// Makes a file that is not there yet. Throws Error when anything, a symbolic link included, has
  /// the name.
  void openNew(const std::string &path);
  /// The same without 'atomic', keeping the first `bytes` of a file that is there.
  void openBehind(const std::string &path, uint64_t bytes);
  bool isOpen() const { return fd >= 0; }
  /// Allocates nothing unless it throws Error.
  void write(const void *data, size_t size);
  /// Flushes to the disk, closes, renames.
  void commit();

private:
  [[noreturn]] void fail(const char *doing);
  void openName(const std::string &name, int flags);
  void openTemporary();
  std::string path, temporary; // temporary: empty when not atomic
  int fd = -1;
  bool regular = false;
};

} // namespace fsdprt

#endif // FSDPRT_IO_OUTPUTFILE_H
