//===- Nvtx.cpp - Ranges for profiling tools --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime has slots for the functions of all NVTX modules. A tool may write to the slots of a
// module without checking that the module exists. The runtime calls only two of the slots. If the
// library of a tool cannot be loaded, the run continues without the tool.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Nvtx.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <optional>

using namespace fsdprt;

namespace {
using Function = void (*)();

/// `functionsOf` contains the number of functions of each of the NVTX modules 1 to 6. These modules
/// are core, CUDA, OpenCL, CUDA runtime, core with domains, and synchronisation.
constexpr unsigned modules = 7, mostFunctions = 15;
constexpr unsigned functionsOf[modules] = {0, 15, 8, 14, 6, 15, 6};
constexpr unsigned core = 1, rangePush = 9, rangePop = 11;
constexpr uint32_t callbacksTable = 1, versionTable = 3;

Function slots[modules][mostFunctions + 1];
// pointers to the slots of each module, preceded and followed by a null pointer
Function *tables[modules][mostFunctions + 2];

int tableOf(unsigned module, Function ***table, unsigned *size) {
  if (module == 0 || module >= modules)
    return 0;
  if (size)
    *size = functionsOf[module] + 1;
  if (table)
    *table = tables[module];
  return 1;
}

struct Callbacks {
  size_t bytes;
  int (*table)(unsigned, Function ***, unsigned *);
};
struct Version {
  size_t bytes;
  uint32_t version, reserved;
  void (*setToolsVersion)(uint32_t);
};

const void *exportTable(uint32_t number) {
  static const Callbacks callbacks = {sizeof(Callbacks), tableOf};
  static const Version version = {sizeof(Version), 3, 0, [](uint32_t) {}};
  return number == callbacksTable ? static_cast<const void *>(&callbacks)
         : number == versionTable ? &version
                                  : nullptr;
}
} // namespace

const Nvtx *Nvtx::find() {
  static const std::optional<Nvtx> found = []() -> std::optional<Nvtx> {
    const char *path = std::getenv("NVTX_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE) : nullptr;
    auto begin = library ? reinterpret_cast<int (*)(const void *(*)(uint32_t))>(
                               dlsym(library, "InitializeInjectionNvtx2"))
                         : nullptr;
    for (unsigned module = 1; module < modules; ++module)
      for (unsigned i = 1; i <= functionsOf[module]; ++i)
        tables[module][i] = &slots[module][i];
    if (!begin || !begin(exportTable) || !slots[core][rangePush] || !slots[core][rangePop])
      return std::nullopt;
    return Nvtx(reinterpret_cast<int (*)(const char *)>(slots[core][rangePush]),
                reinterpret_cast<int (*)()>(slots[core][rangePop]));
  }();
  return found ? &*found : nullptr;
}
