//===- OptionChecks.h - Values and combinations of options ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares CLI11 validators, which check the values of single options, and a function that checks
// combinations of options.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_OPTIONCHECKS_H
#define FSDP_RUN_OPTIONCHECKS_H

#include "Options.h"
#include <CLI/CLI.hpp>

namespace fsdprt {

/// Default and largest number of steps on the null device. Faults are accesses to values of the
/// same step or of the previous two steps, so three steps find all of them. Further steps only
/// repeat the accesses of these three steps.
inline constexpr uint64_t nullSteps = 3, mostNullSteps = 1000;

/// Accepts numbers from `least` to `most` that consist only of digits.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = UINT64_MAX);
/// Returns a validator that accepts the numbers for which accepts() returns true. `expected`
/// describes these numbers in messages.
CLI::Validator number(const char *expected, bool (*accepts)(double));
/// Returns a validator that accepts learning rates. A learning rate must be at least 0, and must be
/// finite when it is converted to f32.
CLI::Validator aRate();
CLI::Validator oneOf(std::vector<std::string> names);

/// Parses `text`, which has the form MIN:MAX, to two numbers of ranks. If `text` is invalid,
/// returns an error message. Otherwise returns "".
std::string parseRange(const std::string &text, uint64_t &least, uint64_t &most);

/// If the given options cannot be combined with each other, returns an error message. Otherwise
/// returns nullopt.
std::optional<std::string> contradiction(const CLI::App &app, const Options &options);

} // namespace fsdprt

#endif // FSDP_RUN_OPTIONCHECKS_H
