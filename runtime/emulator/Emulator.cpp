//===- Emulator.cpp - Run PTX without a GPU ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The constructor allocates the memory for the variables of the module. A function is decoded when
// it is launched for the first time.
//
//===----------------------------------------------------------------------===//

#include "emulator/Emulator.h"
#include "emulator/machine/Machine.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

Emulator::Emulator(std::string name, std::string text, std::shared_ptr<Memory> memory)
    : parsed(parse(std::move(name), std::move(text))), all(std::move(memory)) {
  placeVariables();
}

Emulator::~Emulator() {
  for (auto &[variable, storage] : variables)
    memory().release(*storage);
}

/// Allocates the module's variables, which are zero by default (PTX ISA, "Initializers").
void Emulator::placeVariables() {
  std::vector<const Variable *> all = parsed->globals;
  for (const auto &function : parsed->functions)
    all.insert(all.end(), function->variables.begin(), function->variables.end());
  for (const Variable *variable : all) {
    if ((variable->space != Space::Global && variable->space != Space::Const) ||
        variable->isExternal)
      continue;
    Storage &storage = memory().allocate(std::string(variable->name), variable->bytes,
                                         std::max<uint64_t>(variable->alignment, 256));
    std::copy(variable->initial.begin(), variable->initial.end(), storage.own.begin());
    std::fill(storage.written.begin(), storage.written.end(), 1);
    storage.isReadOnly = variable->space == Space::Const;
    variables[variable] = &storage;
  }
  for (auto &[variable, storage] : variables)
    for (const Variable::Address &address : variable->addresses) {
      auto target = variables.find(address.target);
      if (target == variables.end())
        parsed->source.fail(
            variable->at, "the initial value of %s is the address of %s, which is in another space",
            quoted(variable->name).c_str(), quoted(address.target->name).c_str());
      uint64_t value = target->second->base + address.addend;
      std::memcpy(storage->bytes + address.offset, &value, sizeof value);
    }
}

static std::string entryNames(const Module &module) {
  std::string names;
  for (const auto &function : module.functions)
    if (function->isEntry)
      names += (names.empty() ? "" : ", ") + std::string(function->name);
  return names.empty() ? "none" : names;
}

const Program &Emulator::program(const std::string &entry) {
  auto known = programs.find(entry);
  if (known != programs.end())
    return known->second;
  const Function *function = parsed->find(entry);
  if (!function || !function->isEntry)
    badInput("%s: no entry function %s; there are: %s", parsed->source.name.c_str(),
             quoted(entry).c_str(), entryNames(*parsed).c_str());
  return programs.emplace(entry, decode(*parsed, *function)).first->second;
}

Storage &Emulator::variable(const std::string &name) {
  for (auto &[variable, storage] : variables)
    if (variable->name == name)
      return *storage;
  badInput("%s: no variable %s in global or constant memory", parsed->source.name.c_str(),
           quoted(name).c_str());
}

Counters Emulator::launch(const Launch &launch) {
  Counters counters;
  Grid(program(launch.entry), memory(), variables, launch, counters).run();
  return counters;
}
