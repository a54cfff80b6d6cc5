//===- OptionChecks.h - Values and combinations of options ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares CLI11 validators of values, and a check of combinations of options.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONCHECKS_H
#define FSDP_RUN_OPTIONCHECKS_H

#include "Options.h"
#include <CLI/CLI.hpp>

namespace fsdprt {

/// Default and largest number of steps on the null device. Three steps find all faults in how a
/// step uses values of the previous two steps. Further steps only repeat these accesses.
inline constexpr uint64_t nullSteps = 3, mostNullSteps = 1000;

/// Accepts numbers from `least` to `most` that consist only of digits.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Accepts numbers for which accepts() returns true. `expected` describes such numbers in messages.
CLI::Validator number(const char *expected, bool (*accepts)(double));
/// Accepts learning rates: finite f32 numbers of at least 0.
CLI::Validator aRate();
CLI::Validator oneOf(std::vector<std::string> names);

/// Parses MIN:MAX, two numbers of ranks. Returns an error message, or an empty text on success.
std::string parseRange(const std::string &text, uint64_t &least, uint64_t &most);

/// Returns an error message if the given options cannot be combined, or nullopt.
std::optional<std::string> contradiction(const CLI::App &app, const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONCHECKS_H
