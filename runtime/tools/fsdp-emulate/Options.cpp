//===- Options.cpp - Command line of fsdp-emulate ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "fsdpcommon/ShortText.h"
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

using namespace fsdprt;
using namespace fsdprt::emulate;

/// Default limit of the number of instructions. This limit ends an endless loop after 20 s if the
/// loop is empty, and after about 2 minutes if the loop contains arithmetic.
static constexpr uint64_t defaultStepLimit = uint64_t(1) << 32;

static const char *const description =
    R"(Runs PTX on the host, lane by lane, and checks every access.

Examples:
  fsdp-emulate kernel.ptx --list                          list functions with parameters and memory
  fsdp-emulate kernel.ptx --entry=add --grid=4 --block=64 --arg=f32[256]:iota --arg=f32[256]:ones --arg=f32[256] --arg=u32:256 --print=2:8
  fsdp-emulate kernel.ptx --entry=add ... --counts        count instructions, bytes, bank conflicts
  fsdp-emulate kernel.ptx --entry=add ... --save=2:c.bin  write the memory of an argument

Arguments of the function, in order:
  --arg=TYPE:VALUE         a number: u8, u16, u32, u64, s8, s16, s32, s64, b32, f16, bf16, f32, f64
  --arg=TYPE[COUNT]:FILL   memory, whose address is passed. FILL is zeros (the default), ones, iota (0, 1, 2, ...),
                           random or random=SEED (between -1 and 1; integers from 0 to 99), unwritten, or @FILE
  --arg=map:TYPE[D0,D1,...]:box=B0,B1,...:FILL
                           a tensor map (128 bytes) of memory with these sizes, the innermost first, at most 5.
                           TYPE is u8, u16, u32, s32, u64, s64, f16, bf16, f32, tf32 or f64. Before FILL there may be
                           swizzle=32, 64 or 128; strides=BYTES,... of dimensions 1 and on; steps=N,N,... (element
                           strides); outside=nan (0 is the default); of=INDEX (the memory of an earlier argument)

Errors that end the run, with location, warp and lane: accesses out of bounds or misaligned, reads of unwritten registers or
memory, races between threads, barriers that some threads do not reach, deadlocks. Supported PTX: docs/explanation/emulator.md.
Exit codes: 0 success, 1 an error of the program, or output that cannot be written, 2 bad usage, or a file that cannot be opened.)";

static void takeSizes(const std::string &text, const char *option, uint32_t (&sizes)[3]) {
  size_t at = 0;
  for (int axis = 0; axis < 3; ++axis) {
    size_t comma = text.find(',', at);
    std::string part = text.substr(at, comma == std::string::npos ? comma : comma - at);
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), sizes[axis]);
    bool isLast = comma == std::string::npos;
    if (error != std::errc() || end != part.data() + part.size() || !sizes[axis] ||
        (axis == 2 && !isLast))
      throw CLI::ValidationError(option,
                                 "expected X, X,Y or X,Y,Z, numbers above 0, found '" + text + "'");
    if (isLast)
      return;
    at = comma + 1;
  }
}

/// Parses a number of at least `least`. The number is decimal, or hexadecimal if it begins with 0x.
static void takeNumber(const std::string &text, const char *option, uint64_t least,
                       uint64_t &number) {
  bool isHex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const char *first = text.data() + (isHex ? 2 : 0), *last = text.data() + text.size();
  auto [end, error] = std::from_chars(first, last, number, isHex ? 16 : 10);
  if (error != std::errc() || end != last || number < least)
    throw CLI::ValidationError(option, "expected a number of at least " + std::to_string(least) +
                                           ", below 2^64, found '" + text + "'");
}

static void addOptions(CLI::App &app, Options &options) {
  app.set_version_flag("--version", "fsdp-emulate " FSDPRT_VERSION_STRING);
  app.add_option("file", options.file, "PTX text")->required()->type_name("FILE.ptx");
  app.add_option("--entry", options.launch.entry, "Function to run (default: the only one)")
      ->type_name("NAME");
  struct Shape {
    const char *name, *help;
    uint32_t (&sizes)[3];
  };
  for (Shape shape : {Shape{"--grid", "Number of blocks", options.launch.grid},
                      Shape{"--block", "Threads per block", options.launch.block},
                      Shape{"--cluster", "Blocks per cluster", options.launch.cluster}})
    app.add_option_function<std::string>(
           shape.name,
           [shape](const std::string &text) { takeSizes(text, shape.name, shape.sizes); },
           shape.help)
        ->type_name("X[,Y[,Z]]");
  auto addNumber = [&](const char *name, uint64_t least, uint64_t &number, const char *help) {
    return app.add_option_function<std::string>(
        name,
        [name, least, &number](const std::string &text) { takeNumber(text, name, least, number); },
        help);
  };
  addNumber("--shared", 0, options.launch.dynamicSharedBytes, "Dynamic shared memory in bytes")
      ->type_name("BYTES");
  app.add_option("--arg", options.arguments, "Argument of the function; see above")
      ->type_name("ARG")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--print", options.prints,
                 "Print the memory of argument INDEX (from 0), or COUNT elements of it")
      ->type_name("INDEX[:COUNT]")
      ->allow_extra_args(false);
  app.add_option("--save", options.saves, "Write the memory of argument INDEX to a file")
      ->type_name("INDEX:FILE")
      ->allow_extra_args(false);
  app.add_flag("--counts", options.counts, "Print counters of instructions and bytes");
  app.add_flag("--list", options.list, "Print the functions instead of running one");
  options.launch.stepLimit = defaultStepLimit;
  addNumber(
      "--step-limit", 1, options.launch.stepLimit,
      "Limit of warp instructions; the run ends with an error above it (default 4294967296, a "
      "minute or so)")
      ->type_name("N");
  app.add_flag_callback(
      "--no-races", [&] { options.launch.checks.races = false; }, "Disable the race check");
  app.add_flag_callback(
      "--no-initialised", [&] { options.launch.checks.initialised = false; },
      "Disable the check for unwritten registers and memory");
}

bool fsdprt::emulate::parseOptions(int argc, char **argv, Options &options, int &exitCode) {
  CLI::App app(description, "fsdp-emulate");
  addOptions(app, options);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::ParseError &error) {
    // If the exit code of the exception is 0, the user has asked for --help or --version.
    if (error.get_exit_code() == 0) {
      exitCode = app.exit(error);
      if (!std::cout.flush())
        exitCode = FSDPRT_FAILED;
      return false;
    }
    std::fprintf(stderr, "fsdp-emulate: error: %s (see --help)\n",
                 fsdpcommon::printableMessage(error.what()).c_str());
    exitCode = FSDPRT_BAD_INPUT;
    return false;
  }
}
