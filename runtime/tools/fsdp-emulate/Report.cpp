//===- Report.cpp - Output of fsdp-emulate ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "emulator/machine/Program.h"
#include "io/OutputFile.h"
#include <algorithm>
#include <charconv>
#include <cstdio>

using namespace fsdprt;
using namespace fsdprt::emulate;

void fsdprt::emulate::printList(Emulator &emulator) {
  const Module &module = emulator.module();
  std::printf("%s: PTX %u.%u for %s\n", module.source.name.c_str(), module.version / 10,
              module.version % 10, std::string(module.target).c_str());
  for (const auto &function : module.functions) {
    if (!function->isEntry || !function->hasBody)
      continue;
    const Program &program = emulator.program(std::string(function->name));
    std::printf("%s: %zu parameters, %zu instructions, %llu bytes of shared memory%s\n",
                std::string(function->name).c_str(), function->parameters.size(),
                program.code.size(), static_cast<unsigned long long>(program.sharedBytes),
                program.dynamicAlignment ? " plus --shared" : "");
    for (const Variable *parameter : function->parameters)
      std::printf("  %s: %s, %llu bytes\n", std::string(parameter->name).c_str(),
                  nameOf(parameter->type), static_cast<unsigned long long>(parameter->bytes));
  }
}

void fsdprt::emulate::printCounters(const Counters &counters) {
  const std::pair<const char *, uint64_t> rows[] = {
      {"warp instructions", counters.instructions},
      {"lane instructions", counters.laneInstructions},
      {"bytes loaded from global memory", counters.globalLoadBytes},
      {"bytes stored to global memory", counters.globalStoreBytes},
      {"32-byte sectors of global memory", counters.globalSectors},
      {"bytes loaded from shared memory", counters.sharedLoadBytes},
      {"bytes stored to shared memory", counters.sharedStoreBytes},
      {"passes over shared memory", counters.sharedPasses},
      {"extra passes for bank conflicts", counters.bankConflicts},
      {"divergent branches", counters.divergentBranches},
      {"barriers reached by warps", counters.barriers},
      {"lane atomic operations", counters.atomics},
      {"multiply-adds of matrix instructions", counters.multiplyAdds},
  };
  for (auto [name, value] : rows)
    std::printf("%-38s %14llu\n", name, static_cast<unsigned long long>(value));
  std::vector<std::pair<uint64_t, std::string>> opcodes;
  for (const auto &[name, count] : counters.opcodes)
    opcodes.push_back({count, name});
  std::sort(opcodes.begin(), opcodes.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (const auto &[count, name] : opcodes)
    std::printf("  %-36s %14llu\n", name.c_str(), static_cast<unsigned long long>(count));
}

/// Parses `text`, which has the form "INDEX" or "INDEX:REST". Returns the argument with the index
/// INDEX, and sets `rest` to REST. Throws Error if the text is invalid or the argument has no
/// memory. `expected` describes the valid texts, for use in messages.
static const Argument &memoryOf(const char *option, const char *expected, const std::string &text,
                                const std::vector<Argument> &arguments, std::string &rest) {
  size_t colon = std::min(text.find(':'), text.size()), index = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + colon, index);
  if (error != std::errc() || end != text.data() + colon)
    badInput("%s=%s: expected %s, where INDEX counts arguments from 0", option,
             printable(text).c_str(), expected);
  if (index >= arguments.size() || !arguments[index].storage)
    badInput("%s=%s: expected the index of an argument with memory, found %zu", option,
             printable(text).c_str(), index);
  rest = colon < text.size() ? text.substr(colon + 1) : "";
  return arguments[index];
}

Print fsdprt::emulate::parsePrint(const std::string &text, const std::vector<Argument> &arguments) {
  std::string rest;
  const Argument &argument = memoryOf("--print", "INDEX or INDEX:COUNT", text, arguments, rest);
  uint64_t all = argument.storage->size / sizeOf(argument.type), count = all;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  if (text.find(':') != std::string::npos &&
      (error != std::errc() || end != rest.data() + rest.size()))
    badInput("--print=%s: expected a number of elements", printable(text).c_str());
  return {argument, std::min(count, all)};
}

void fsdprt::emulate::printArgument(const Print &print) {
  std::printf("%s:", print.argument.storage->name.c_str());
  for (uint64_t k = 0; k < print.count; ++k)
    std::printf(" %s", elementText(print.argument, k).c_str());
  std::printf("\n");
}

Save fsdprt::emulate::parseSave(const std::string &text, const std::vector<Argument> &arguments) {
  Save save;
  save.argument = memoryOf("--save", "INDEX:FILE", text, arguments, save.path);
  if (save.path.empty())
    badInput("--save=%s: expected INDEX:FILE", printable(text).c_str());
  OutputFile::expectWritable(save.path, /*atomic=*/false);
  return save;
}

void fsdprt::emulate::saveArgument(const Save &save) {
  try {
    OutputFile file(save.path, /*atomic=*/false);
    file.write(save.argument.storage->bytes, save.argument.storage->size);
    file.commit();
  } catch (const Error &error) {
    failed("%s", error.what()); // The kernel has run, so this error is not a usage error.
  }
}
