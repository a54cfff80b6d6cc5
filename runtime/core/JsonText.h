//===- JsonText.h - What keeps a text from being JSON --------- -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_JSONTEXT_H
#define FSDPRT_CORE_JSONTEXT_H

#include "core/Error.h"
#include <nlohmann/json.hpp>

namespace fsdprt {

/// What json::parse threw of `text`, with a line and a column.
std::string whyNotJson(const std::string &text, const nlohmann::json::exception &error);

/// Throws Error if brackets of `text` are nested more than 64 deep. Copies, comparisons and
/// printing of nlohmann's values call themselves for each level, so a deeper text could exhaust the
/// stack. `path` is named in the message.
void checkJsonDepth(const std::string &path, const char *text, size_t size);

} // namespace fsdprt

#endif // FSDPRT_CORE_JSONTEXT_H
