//===- Source.h - A file of PTX, and errors in it ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares Source, which contains the name and the text of a PTX file. Every error message begins
// with a location in the file, for example "kernel.ptx:12:5: error: ...".
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_EMULATOR_PTX_SOURCE_H
#define FSDPRT_EMULATOR_PTX_SOURCE_H

#include "core/Error.h"
#include <cstdint>
#include <string>
#include <string_view>

namespace fsdprt::emulate {

/// A line and a column, both counted from 1.
struct Location {
  uint32_t line = 0, column = 0;
};

struct Source {
  std::string name;
  std::string text;

  [[noreturn]] void fail(Location at, const char *text, ...) const
      __attribute__((format(printf, 3, 4)));
};

/// Returns a word of the source in quotes, for use in messages. Replaces control characters by '?',
/// and shortens long words.
inline std::string quoted(std::string_view text) { return "'" + printable(text) + "'"; }

} // namespace fsdprt::emulate

#endif // FSDPRT_EMULATOR_PTX_SOURCE_H
