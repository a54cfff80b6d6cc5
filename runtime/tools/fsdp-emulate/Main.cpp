//===- Main.cpp - fsdp-emulate ----------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses options and the PTX module, allocates arguments, launches the kernel and prints a report.
// On an error, prints one line to stderr and returns an exit code.
//
//===----------------------------------------------------------------------===//

#include "InputFile.h"
#include "Report.h"
#include "fsdpcommon/ShortText.h"
#include <cstdio>

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr size_t maxSourceBytes = size_t(256) << 20;

/// Returns the only entry function of a module. Throws Error unless there is exactly one.
static std::string chooseEntry(const Module &module) {
  const Function *only = nullptr;
  for (const auto &function : module.functions) {
    if (!function->isEntry || !function->hasBody)
      continue;
    if (only)
      badInput("%s has several entry functions; choose one with --entry=NAME (--list prints them)",
               module.source.name.c_str());
    only = function.get();
  }
  if (!only)
    badInput("%s has no entry function", module.source.name.c_str());
  return std::string(only->name);
}

static void run(Options &options) {
  Emulator emulator(options.file, readFile(options.file, maxSourceBytes, ""));
  if (options.list)
    return printList(emulator);
  if (options.launch.entry.empty())
    options.launch.entry = chooseEntry(emulator.module());
  emulator.program(options.launch.entry);
  std::vector<Argument> arguments;
  for (const std::string &text : options.arguments)
    arguments.push_back(addArgument(text, arguments, emulator, options.launch));
  std::vector<Print> prints;
  for (const std::string &text : options.prints)
    prints.push_back(parsePrint(text, arguments));
  std::vector<Save> saves;
  for (const std::string &text : options.saves)
    saves.push_back(parseSave(text, arguments));
  Counters counters = emulator.launch(options.launch);
  for (const Print &print : prints)
    printArgument(print);
  for (const Save &save : saves)
    saveArgument(save);
  if (options.counts)
    printCounters(counters);
}

int main(int argc, char **argv) {
  Options options;
  int exitCode = 0;
  if (!parseOptions(argc, argv, options, exitCode))
    return exitCode;
  int status = FSDPRT_OK;
  std::string message;
  try {
    run(options);
    if (std::fflush(stdout))
      failed("cannot write the output");
  } catch (const Error &error) {
    status = error.status, message = error.message;
  } catch (const std::bad_alloc &) {
    status = FSDPRT_FAILED, message = "out of memory";
  } catch (const std::exception &error) {
    status = FSDPRT_FAILED, message = error.what();
  }
  if (status == FSDPRT_OK)
    return 0;
  if (message.find("the limit of " + std::to_string(options.launch.stepLimit) +
                   " instructions is reached") != std::string::npos)
    message += "; --step-limit=N raises it";
  // A message with a source location begins with the location, like the messages of compilers.
  bool hasPlace = message.find(": error: ") != std::string::npos;
  std::fprintf(stderr, "%s%s\n", hasPlace ? "" : "fsdp-emulate: error: ",
               fsdpcommon::printableMessage(message).c_str());
  return status;
}
