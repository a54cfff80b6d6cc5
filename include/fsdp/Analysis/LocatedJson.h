//===- LocatedJson.h - JSON values with their line and column ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes the JSON reader of common/ available in the compiler's namespace. The runtime uses the same
// reader.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_LOCATEDJSON_H
#define FSDP_ANALYSIS_LOCATEDJSON_H

#include "fsdpcommon/LocatedJson.h"

namespace mlir::fsdp {
using fsdpcommon::JsonMember;
using fsdpcommon::JsonProblem;
using fsdpcommon::JsonValue;
using fsdpcommon::parseJson;
using fsdpcommon::readJson;
using fsdpcommon::shortText;
} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_LOCATEDJSON_H
