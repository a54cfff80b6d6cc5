//===- FuzzConfig.cpp - Fuzz the reader of --config files -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each setting that is accepted is given to its option, as fsdp-compile does.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Options/OptionTable.h"
#include "fsdp/Pipelines/Config.h"
#include "fuzz/Fuzzing.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::fsdp;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fsdprt::fuzz::MemoryFile file;
  file.write(data, size);
  auto report = [](bool, const ConfigOrigin &place, const llvm::Twine &message) {
    fsdprt::fuzz::expectReadable(place.key + ": " + message.str());
  };
  std::optional<Config> config = readConfig(file.getPath(), report);
  if (!config)
    return 0;
  StepOptions options;
  for (const ConfigSetting &setting : config->settings)
    for (const std::string &value : setting.values)
      if (auto problem = setOption(options, setting.option, value, OptionOrigin::File))
        fsdprt::fuzz::expectReadable(*problem);
  if (auto problem = checkValues(options))
    fsdprt::fuzz::expectReadable(*problem);
  int64_t accumulation = 0;
  checkBatch(*config, /*ranks=*/4, /*batch=*/2, accumulation, report);
  return 0;
}
