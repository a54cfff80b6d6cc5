//===- Guard.h - Exceptions as statuses -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines the handles of the C interface, and guard(), which reports exceptions as errors of calls.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ABI_GUARD_H
#define FSDPRT_ABI_GUARD_H

#include "core/Error.h"
#include "execute/Session.h"
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <new>

struct fsdprt_artifact {
  std::shared_ptr<const fsdprt::Artifact> artifact;
};
struct fsdprt_session {
  std::unique_ptr<fsdprt::Session> session;
};

namespace fsdprt {

/// Writes `status` and `message` to `error`. Shortens the message so that it fits into a struct of
/// error->struct_size bytes. `error` may be null. Returns `status`.
inline fsdprt_status report(fsdprt_error *error, fsdprt_status status,
                            const char *message) noexcept {
  if (!error || error->struct_size < offsetof(fsdprt_error, message) + 1)
    return status;
  error->status = status;
  size_t capacity = std::min(error->struct_size, sizeof *error) - offsetof(fsdprt_error, message);
  std::snprintf(error->message, capacity, "%s", message);
  return status;
}

/// Calls body() and returns FSDPRT_OK. If body() throws, returns the status of the exception and
/// writes the message of the exception to `error`.
template <typename Body>
fsdprt_status guard(fsdprt_error *error, Body body) noexcept {
  try {
    body();
    return FSDPRT_OK;
  } catch (const Error &failure) {
    return report(error, failure.status, failure.what());
  } catch (const std::bad_alloc &) {
    return report(error, FSDPRT_FAILED, "out of memory");
  } catch (const std::exception &failure) {
    return report(error, FSDPRT_FAILED, failure.what());
  } catch (...) {
    return report(error, FSDPRT_FAILED, "unknown failure");
  }
}

} // namespace fsdprt

#endif // FSDPRT_ABI_GUARD_H
