//===- Error.h - Errors and their messages ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Error is the base class of all exceptions of the runtime. The C interface turns an Error into a
// status and a message.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_ERROR_H
#define FSDPRT_CORE_ERROR_H

#include "fsdprt/fsdprt.h"
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace fsdprt {

class Error : public std::exception {
public:
  Error(fsdprt_status status, std::string message) : status(status), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }
  fsdprt_status status;
  std::string message;
};

/// Returns the status of a failed process. `reported` is the number that the failed process has
/// sent. If this number is not the status of a failure, the message may be corrupt. The function
/// then returns FSDPRT_FAILED.
inline fsdprt_status failureStatus(int32_t reported) {
  bool known = reported >= FSDPRT_FAILED && reported <= FSDPRT_HUNG;
  return known ? static_cast<fsdprt_status>(reported) : FSDPRT_FAILED;
}

std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// badInput() throws Error with FSDPRT_BAD_INPUT, and failed() throws Error with FSDPRT_FAILED.
[[noreturn]] void badInput(const char *text, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void failed(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// Returns a text such as "1.5 GiB (1,610,612,736 bytes)".
std::string bytesText(uint64_t bytes);

/// Returns fsdpcommon::shortText() of `text`, with at most about 120 bytes.
std::string printable(std::string_view text);

} // namespace fsdprt

#endif // FSDPRT_CORE_ERROR_H
