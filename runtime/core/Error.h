//===- Error.h - Errors and their messages ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime's only exception type. The C interface turns it into a status and a message.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_ERROR_H
#define FSDPRT_CORE_ERROR_H

#include "fsdprt/fsdprt.h"
#include <exception>
#include <string>
#include <utility>

namespace fsdprt {

class Error : public std::exception {
public:
  Error(fsdprt_status status, std::string message) : status(status), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }
  fsdprt_status status;
  std::string message;
};

/// Returns the status of a failure that another process reported: `reported` if a process can end
/// with that status, else FSDPRT_FAILED. So a corrupt message never counts as success.
inline fsdprt_status failureStatus(int32_t reported) {
  bool known = reported >= FSDPRT_FAILED && reported <= FSDPRT_HUNG;
  return known ? static_cast<fsdprt_status>(reported) : FSDPRT_FAILED;
}

/// Formats like printf and returns the text.
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// Throw Error with the status FSDPRT_BAD_INPUT or FSDPRT_FAILED.
[[noreturn]] void badInput(const char *text, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void failed(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// Returns a size such as "1.5 GiB (1,610,612,736 bytes)".
std::string bytesText(uint64_t bytes);

/// Returns a name from a file for use in a message. Control characters become '?', and text after
/// 120 bytes is cut off.
std::string printable(const char *text, size_t size);
inline std::string printable(const std::string &text) {
  return printable(text.data(), text.size());
}

} // namespace fsdprt

#endif // FSDPRT_CORE_ERROR_H
