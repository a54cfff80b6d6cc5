//===- OptionChecks.h - Values and combinations of options ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares CLI11 validators of single values, and checks of combinations of options.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONCHECKS_H
#define FSDP_RUN_OPTIONCHECKS_H

#include "Options.h"
#include <CLI/CLI.hpp>

namespace fsdprt {

/// Default and maximum number of steps on the null device. Three steps cover the values that a step
/// leaves to the next two steps; further steps only repeat these.
inline constexpr uint64_t nullSteps = 3, mostNullSteps = 1000;

/// Accepts numbers from `least` to `most` that consist only of digits.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Accepts numbers for which `accepts` returns true. `expected` describes them in messages.
CLI::Validator number(const char *expected, bool (*accepts)(double));
/// Accepts a learning rate: a finite f32 of at least 0.
CLI::Validator aRate();
CLI::Validator oneOf(std::vector<std::string> names);

/// Parses MIN:MAX into two numbers of ranks. Returns an error message, or an empty text.
std::string parseRange(const std::string &text, uint64_t &least, uint64_t &most);

/// Returns an error message if the given options cannot be combined.
std::optional<std::string> contradiction(const CLI::App &app, const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONCHECKS_H
