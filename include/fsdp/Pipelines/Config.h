//===- Config.h - Configuration files ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the file of --config=FILE.json and returns settings of options. Keys of the file are names
// of options (Options.def), or keys of Hugging Face and DeepSpeed (ConfigKeys.def).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_CONFIG_H
#define FSDP_PIPELINES_CONFIG_H

#include "fsdp/Analysis/LocatedJson.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {

/// Position and name of a key in the file.
struct ConfigOrigin {
  unsigned line = 0, column = 0;
  std::string key;
};

/// A setting `--OPTION=VALUE`. It has several values only if the value of the option is a list.
struct ConfigSetting {
  std::string option;
  std::vector<std::string> values;
  ConfigOrigin origin;
};

/// A number in the file that sets no option but must agree with the compiled model.
struct ConfigFact {
  int64_t value = 0;
  ConfigOrigin origin;
};

struct Config {
  /// Settings in the order of the file. No two settings have the same option.
  std::vector<ConfigSetting> settings;
  /// Sequences per rank and micro-batch, number of ranks, and sequences per step on all ranks
  /// together.
  std::optional<ConfigFact> batch, ranks, totalBatch;

  const ConfigSetting *find(llvm::StringRef option) const;
};

/// Function that reports an error or, if `isError` is false, warns of a key that has no effect.
using ConfigReport =
    llvm::function_ref<void(bool isError, const ConfigOrigin &place, const llvm::Twine &message)>;

/// Reads a file. Returns nothing if an error was reported.
std::optional<Config> readConfig(llvm::StringRef path, ConfigReport report);

/// Checks that the batch sizes of the file agree with `ranks`, with `batch` (the batch size of the
/// model, 0 if it has none) and with `accumulation` (micro-batches per step). If `accumulation` is
/// 0, sets it from the file. Returns false after an error.
bool checkBatch(const Config &config, int64_t ranks, int64_t batch, int64_t &accumulation,
                ConfigReport report);

/// Prints the keys of Hugging Face and DeepSpeed (ConfigKeys.def) as a Markdown table.
void printConfigKeys(llvm::raw_ostream &os);

/// Returns the options that the keys of ConfigKeys.def set.
std::vector<std::string> getConfigTargets();

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_CONFIG_H
