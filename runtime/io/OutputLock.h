//===- OutputLock.h - Exclusive use of an output file -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If two runs would write one file, the second run fails at its start instead of hours later. A run
// claims a file when it binds a Unix socket to an abstract name. The abstract name is a hash of
// three values: the name of the file, and the device and the inode of its folder. A claim creates
// no file, and ends when the process that made the claim ends. Only processes in the same network
// namespace of the same machine detect a claim. If two runs do not detect each other's claims, each
// run writes a complete file, and the file that is written last remains.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_OUTPUTLOCK_H
#define FSDPRT_IO_OUTPUTLOCK_H

#include <string>
#include <utility>

namespace fsdprt {

class OutputLock {
public:
  /// Claims a file, which need not exist. Does nothing if `path` is a device or pipe. Throws Error
  /// if another process has claimed the file. The message contains `option`, the name of the option
  /// for the file, such as "--export".
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
