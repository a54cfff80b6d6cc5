//===- Config.h - Configuration files ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the file of --config=FILE.json and returns settings of options. A key of the file is the
// name of an option (Options.def), or a key that configuration files of Hugging Face or DeepSpeed
// use (ConfigKeys.def).
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

/// A setting `--OPTION=VALUE`. `values` has several elements only if the value of the option is a
/// list.
struct ConfigSetting {
  std::string option;
  std::vector<std::string> values;
  ConfigOrigin origin;
};

/// A number in the file that does not set an option, but must agree with the model that is
/// compiled.
struct ConfigFact {
  int64_t value = 0;
  ConfigOrigin origin;
};

struct Config {
  /// Settings in the order of the file. No two settings have the same option.
  std::vector<ConfigSetting> settings;
  /// `batch` is the number of sequences that a rank processes per micro-batch. `ranks` is the
  /// number of ranks. `totalBatch` is the number of sequences that all ranks together process per
  /// step.
  std::optional<ConfigFact> batch, ranks, totalBatch;

  const ConfigSetting *find(llvm::StringRef option) const;
};

/// Function that reports an error or, if `isError` is false, warns of a key that has no effect.
using ConfigReport =
    llvm::function_ref<void(bool isError, const ConfigOrigin &place, const llvm::Twine &message)>;

/// Reads a file. Returns nothing if an error was reported.
std::optional<Config> readConfig(llvm::StringRef path, ConfigReport report);

/// Checks that the batch sizes in the file agree with `ranks`, with `batch` and with
/// `accumulation`. `batch` is the batch size of the model, or 0 if the model has none.
/// `accumulation` is the number of micro-batches per step. If `accumulation` is 0, computes
/// `accumulation` from the numbers in the file. Returns false after an error.
bool checkBatch(const Config &config, int64_t ranks, int64_t batch, int64_t &accumulation,
                ConfigReport report);

/// Prints the keys of Hugging Face and DeepSpeed (ConfigKeys.def) as a Markdown table.
void printConfigKeys(llvm::raw_ostream &os);

/// Returns the names of the options that the keys in ConfigKeys.def set.
std::vector<std::string> getConfigTargets();

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_CONFIG_H
