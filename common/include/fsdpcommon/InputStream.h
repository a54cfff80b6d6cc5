//===- InputStream.h - Bytes of a file or a pipe -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads inputs that may be pipes, such as the pipe that a shell opens for <(command). Devices are
// refused, because they may provide bytes without end. The reader waits for data from a pipe at
// most for these times:
//
//     no process has opened the pipe for writing    10 s
//     a process has opened it but writes nothing    600 s
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_INPUTSTREAM_H
#define FSDPCOMMON_INPUTSTREAM_H

#include <cstdint>
#include <string>

namespace fsdpcommon {

/// Appends the content of a file, a pipe or a terminal to `bytes`. Returns an empty text on
/// success, and otherwise the reason why the input cannot be read. An input of more than `most`
/// bytes cannot be read.
std::string readInput(const std::string &path, uint64_t most, std::string &bytes);

} // namespace fsdpcommon

#endif // FSDPCOMMON_INPUTSTREAM_H
