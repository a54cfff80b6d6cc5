//===- JsonText.h - Errors of JSON texts -------------------- -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_JSONTEXT_H
#define FSDPRT_CORE_JSONTEXT_H

#include "core/Error.h"
#include <nlohmann/json.hpp>

namespace fsdprt {

/// Returns the reason why json::parse failed on `text`, with line and column.
std::string whyNotJson(const std::string &text, const nlohmann::json::exception &error);

/// Throws Error, which names `path`, if brackets of `text` are nested more than 64 deep. Copying,
/// comparing and printing nlohmann's values recurse once per level, so a deeper text could exhaust
/// the stack.
void checkJsonDepth(const std::string &path, const char *text, size_t size);

} // namespace fsdprt

#endif // FSDPRT_CORE_JSONTEXT_H
