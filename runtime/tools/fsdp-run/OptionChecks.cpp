//===- OptionChecks.cpp - Values and combinations of options ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "OptionChecks.h"
#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>

using namespace fsdprt;

/// Parses a number. Returns nullopt if the text is not a number, or contains anything besides the
/// number.
template <typename Number>
static std::optional<Number> parse(const std::string &text) {
  Number value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

static std::string found(const std::string &text) { return ", found '" + text + "'"; }

CLI::Validator fsdprt::wholeNumber(uint64_t least, uint64_t most) {
  auto check = [=](std::string &text) {
    std::optional<uint64_t> value = parse<uint64_t>(text);
    if (value && *value >= least && *value <= most)
      return std::string();
    std::string range = most == UINT64_MAX
                            ? "of at least " + std::to_string(least) + " that fits 64 bits"
                            : "from " + std::to_string(least) + " to " + std::to_string(most);
    return "expected a whole number " + range + found(text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator fsdprt::number(const char *expected, bool (*accepts)(double)) {
  auto check = [=](std::string &text) {
    std::optional<double> value = parse<double>(text);
    return value && accepts(*value) ? std::string()
                                    : "expected " + std::string(expected) + found(text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator fsdprt::aRate() {
  return number("a finite number of at least 0",
                [](double value) { return value >= 0 && value <= FLT_MAX; });
}

CLI::Validator fsdprt::oneOf(std::vector<std::string> names) {
  auto check = [=](std::string &text) {
    if (std::find(names.begin(), names.end(), text) != names.end())
      return std::string();
    std::string list;
    for (size_t i = 0; i < names.size(); ++i)
      list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    return "expected " + list + found(text);
  };
  return CLI::Validator(check, "");
}

std::string fsdprt::parseRange(const std::string &text, uint64_t &least, uint64_t &most) {
  size_t colon = text.find(':');
  std::optional<uint64_t> first = parse<uint64_t>(text.substr(0, colon)), last;
  if (colon != std::string::npos)
    last = parse<uint64_t>(text.substr(colon + 1));
  if (!first || !last || *first < 1 || *last < *first)
    return "expected MIN:MAX, numbers of ranks from 1, such as 2:8" + found(text);
  least = *first;
  most = *last;
  return "";
}

/// Returns an error message if an option cannot be combined with --device, and otherwise nullopt.
static std::optional<std::string> contradictionOfDevice(const CLI::App &app,
                                                        const Options &options) {
  if (options.restrictCalls && (options.device != "cpu" || options.backend == "mpi"))
    return std::string("--restrict-calls needs --device=cpu and --backend=local or shm: the "
                       "libraries of GPUs and MPI make other system calls");
  if (options.cudaGraph && options.device != "cuda")
    return "--cuda-graph needs --device=cuda, found --device=" + options.device;
  for (const char *name : {"--nccl-windows", "--nccl-cta-policy", "--nccl-max-ctas"})
    if (app.count(name) && options.backend != "nccl")
      return std::string(name) + " needs --backend=nccl, found --backend=" + options.backend;
  if (options.ncclWindows == "on" && options.device != "cuda")
    return "--nccl-windows=on needs arenas on GPUs, --device=cuda, found --device=" +
           options.device;
  if (options.ncclCtaPolicy == "zero" && options.ncclWindows == "off")
    return std::string("--nccl-cta-policy=zero needs windows, which --nccl-windows=off prevents");
  if (!options.gemm.empty() && options.device != "cuda" && options.device != "emulate")
    return "--gemm applies to GPU kernels: expected --device=cuda or emulate, found --device=" +
           options.device;
  for (const char *name : {"--profile", "--trace"})
    if (options.cudaGraph && app.count(name))
      return "--cuda-graph launches a step as a whole, so that single commands cannot be timed: it "
             "cannot be combined with " +
             std::string(name);
  if (options.isNull() && options.steps > mostNullSteps)
    return "--steps: expected at most " + std::to_string(mostNullSteps) +
           " on the null device, because further steps repeat these" +
           found(std::to_string(options.steps));
  if (options.device == "emulate" && options.assertNoAllocations)
    return std::string("--assert-no-allocations needs --device=cpu or cuda: an emulated GPU "
                       "allocates as it runs");
  if (app.count("--threads-per-rank") && (options.device == "emulate" || options.device == "cuda"))
    return "--threads-per-rank has no effect with --device=" + options.device;
  return std::nullopt;
}

std::optional<std::string> fsdprt::contradiction(const CLI::App &app, const Options &options) {
  if (options.warmupSteps > options.steps)
    return "--warmup: expected at most the " + std::to_string(options.steps) + " of --steps" +
           found(std::to_string(options.warmupSteps));
  if (options.decaySteps && options.decaySteps < options.warmupSteps)
    return "--lr-decay-steps: expected at least the " + std::to_string(options.warmupSteps) +
           " of --warmup" + found(std::to_string(options.decaySteps));
  if (options.profile && options.steps < 2)
    return "--profile measures the steps after the first: expected --steps=2 or more" +
           found(std::to_string(options.steps));
  for (const char *name : {"--val-fraction", "--val-every", "--val-batches"})
    if (app.count(name) && !options.hasData() && app[name]->as<double>() != 0)
      return std::string(name) + ": nothing to validate on: expected --data, --text or --input";
  if (options.processesGiven && (options.backend == "local" || options.backend == "mpi"))
    return "--processes needs --backend=shm or nccl, found --backend=" + options.backend;
  if (app.count("--mpi-reduce") && app.count("--backend") && options.backend != "mpi")
    return "--mpi-reduce needs --backend=mpi, found --backend=" + options.backend;
  for (const char *name : {"--on-failure", "--max-restarts"})
    if (app.count(name) && !options.processes)
      return std::string(name) + " has no effect without --processes";
  if (app.count("--max-restarts") && !options.restart)
    return std::string("--max-restarts has no effect without --on-failure=restart");
  if (options.restart && options.save.empty())
    return std::string(
        "--on-failure=restart resumes from a save: expected --save=DIR, and --save-every=K");
  if (options.isElastic() && options.processes && !options.restart)
    return std::string("--elastic needs --on-failure=restart with --processes");
  auto firstBeside = [&](std::set<std::string> known) -> std::string {
    for (const CLI::Option *option : app.get_options())
      if (option->count() && !option->get_lnames().empty() &&
          known.count(option->get_lnames()[0]) == 0)
        return option->get_lnames()[0];
    return "";
  };
  if (std::string other = firstBeside({"simulate", "trace", "config", "verify-key"});
      !options.simulate.empty() && !other.empty())
    return "--simulate trains nothing: it cannot be combined with --" + other;
  if (std::string other = firstBeside({"device", "steps", "peer", "dump", "config"});
      options.isNull() && !other.empty())
    return "--device=null trains nothing: it cannot be combined with --" + other;
  if (std::optional<std::string> problem = contradictionOfDevice(app, options))
    return problem;
  if (!options.peers.empty() && !options.isNull())
    return std::string("--peer has no effect without --device=null");
  if (app.count("--simulate") && options.simulate.empty())
    return std::string("--simulate: expected a file that describes a cluster, found nothing");
  for (const char *name : {"--check-against", "--export", "--save", "--resume"})
    if (!options.onlyKinds.empty() && app.count(name))
      return "--only-kinds times kernels and computes no result: it cannot be combined with " +
             std::string(name);
  return std::nullopt;
}
