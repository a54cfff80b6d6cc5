//===- OutputLock.h - Exclusive use of an output file -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If two runs would write one file, the second run fails at its start instead of hours later. A
// claim is a Unix socket with an abstract name, which is made of the folder's device and inode and
// the file's name. The claim leaves nothing in the file system and ends with its process. Only
// processes of one machine and one network namespace see it. If two runs do not see each other's
// claim, each writes a complete file, and the later file replaces the earlier one.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_OUTPUTLOCK_H
#define FSDPRT_IO_OUTPUTLOCK_H

#include <string>
#include <utility>

namespace fsdprt {

class OutputLock {
public:
  /// Claims a file, which need not exist. Throws Error, which names the other process, if another
  /// process has claimed the file. Devices and pipes are not claimed. `option` is for the message
  /// ("--export").
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
