//===- Handles.h - The C interface for C++ callers --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_HANDLES_H
#define FSDPRT_TRAIN_HANDLES_H

#include "core/Error.h"
#include <memory>

namespace fsdprt {

struct CloseHandle {
  void operator()(fsdprt_artifact *artifact) const { fsdprt_artifact_close(artifact); }
  void operator()(fsdprt_session *session) const { fsdprt_session_destroy(session); }
};
using ArtifactHandle = std::unique_ptr<fsdprt_artifact, CloseHandle>;
using SessionHandle = std::unique_ptr<fsdprt_session, CloseHandle>;

/// Calls a function of the C interface: function(arguments..., &error). If the function fails,
/// throws Error.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
  fsdprt_error error;
  error.struct_size = sizeof error;
  error.message[0] = '\0';
  fsdprt_status status = function(arguments..., &error);
  if (status != FSDPRT_OK)
    throw Error(status, error.message);
}

} // namespace fsdprt

#endif // FSDPRT_TRAIN_HANDLES_H
