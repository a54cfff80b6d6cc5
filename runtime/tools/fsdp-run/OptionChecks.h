//===- OptionChecks.h - Values and combinations of options ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONCHECKS_H
#define FSDP_RUN_OPTIONCHECKS_H

#include "Options.h"
#include <CLI/CLI.hpp>

namespace fsdprt {

/// Default and largest number of steps on the null device. A fault concerns values that were
/// written in the same step or in one of the two steps before it, so three steps find all faults.
/// Further steps only repeat the accesses of these three steps.
inline constexpr uint64_t nullSteps = 3, mostNullSteps = 1000;

/// Accepts numbers from `least` to `most` that consist only of digits.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Accepts numbers for which accepts() returns true. `expected` describes such numbers in messages.
CLI::Validator number(const char *expected, bool (*accepts)(double));
/// Accepts a learning rate, which must be at least 0 and finite as f32.
CLI::Validator aRate();
CLI::Validator oneOf(std::vector<std::string> names);

/// Parses `text`, MIN:MAX, to two numbers of ranks. Returns an error message, or "" on success.
std::string parseRange(const std::string &text, uint64_t &least, uint64_t &most);

/// Returns an error message if the given options cannot be combined, and otherwise nullopt.
std::optional<std::string> contradiction(const CLI::App &app, const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONCHECKS_H
