//===- Error.h - What can go wrong, as text ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One exception type inside the runtime; the C interface turns it into a status.
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

/// Returns the status of a failure that another process reports: one of those that a process ends
/// with, and FSDPRT_FAILED for anything else. So no message of another process makes this one end
/// as if it had succeeded.
inline fsdprt_status failureStatus(int32_t reported) {
  bool known = reported >= FSDPRT_FAILED && reported <= FSDPRT_HUNG;
  return known ? static_cast<fsdprt_status>(reported) : FSDPRT_FAILED;
}

/// printf into a string.
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));

[[noreturn]] void badInput(const char *text, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void failed(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// "1.5 GiB (1,610,612,736 bytes)".
std::string bytesText(uint64_t bytes);

/// Names from files in messages: control characters become '?', long ones are cut.
std::string printable(const char *text, size_t size);
inline std::string printable(const std::string &text) {
  return printable(text.data(), text.size());
}

} // namespace fsdprt

#endif // FSDPRT_CORE_ERROR_H
