//===- OutputLock.h - An output file is of one process ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two runs that will write one file, hours later, are told at their start. A claim is a Unix socket
// with an abstract name, made of the folder's device and inode and the file's name: it leaves
// nothing in the file system and ends with its process. Only processes of one machine and one
// network namespace see it. Of two runs that do not see each other's claim, each writes a whole
// file, and the later one replaces the earlier.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_OUTPUTLOCK_H
#define FSDPRT_IO_OUTPUTLOCK_H

#include <string>
#include <utility>

namespace fsdprt {

class OutputLock {
public:
  /// Claims a file, which need not be there. Throws Error when another process has claimed it, and
  /// names that process. Devices and pipes can be claimed by any number of processes. `option` is
  /// for the message ("--export").
  OutputLock(const std::string &path, const char *option);
  ~OutputLock();
  OutputLock(OutputLock &&other) noexcept : socket(std::exchange(other.socket, -1)) {}
  OutputLock &operator=(OutputLock &&other) noexcept {
    std::swap(socket, other.socket);
    return *this;
  }

private:
  int socket = -1;
};

} // namespace fsdprt

#endif // FSDPRT_IO_OUTPUTLOCK_H
