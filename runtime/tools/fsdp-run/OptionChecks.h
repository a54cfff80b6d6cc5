//===- OptionChecks.h - Values and combinations of options ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Validators of CLI11 for values of fsdp-run's options, and what single options cannot know.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONCHECKS_H
#define FSDP_RUN_OPTIONCHECKS_H

#include "Options.h"
#include <CLI/CLI.hpp>

namespace fsdprt {

/// On the null device: what the first leaves to the second, and that to a third. Later ones are
/// like it, so that many only take time.
inline constexpr uint64_t nullSteps = 3, mostNullSteps = 1000;

/// Accepts digits alone: no sign that wraps, nothing too large for 64 bits.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Accepts numbers that `accepts` does; `expected` describes them.
CLI::Validator number(const char *expected, bool (*accepts)(double));
/// Accepts a learning rate: what f32 holds.
CLI::Validator aRate();
CLI::Validator oneOf(std::vector<std::string> names);

/// Returns why options that were given do not go together, if that is so.
std::optional<std::string> contradiction(const CLI::App &app, const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONCHECKS_H
