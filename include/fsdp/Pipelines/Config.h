//===- Config.h - Configuration files ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the file of --config=FILE.json as settings of options. Keys are names of options
// (Options.def), or keys of Hugging Face and DeepSpeed (ConfigKeys.def). Does not depend on the IR
// or the command line.
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

/// A setting `--OPTION=VALUE`. Only options that take a list have several values.
struct ConfigSetting {
  std::string option;
  std::vector<std::string> values;
  ConfigOrigin origin;
};

/// A number that sets no option but is compared with the compiled model.
struct ConfigFact {
  int64_t value = 0;
  ConfigOrigin origin;
};

struct Config {
  /// Settings in the order of the file, each option once.
  std::vector<ConfigSetting> settings;
  /// Sequences per rank and micro-batch, number of ranks, and sequences per step on all ranks.
  std::optional<ConfigFact> batch, ranks, totalBatch;

  const ConfigSetting *find(llvm::StringRef option) const;
};

/// Function that reports an error or, if not `isError`, a key that was accepted without effect.
using ConfigReport =
    llvm::function_ref<void(bool isError, const ConfigOrigin &place, const llvm::Twine &message)>;

/// Reads a file. Returns nothing if an error was reported.
std::optional<Config> readConfig(llvm::StringRef path, ConfigReport report);

/// Compares the facts of the file with `ranks` and with the `batch` of the model (0 if the model
/// has none). Also compares `accumulation` (micro-batches per step) with the file, or sets it from
/// the file if it is 0. Returns false after an error.
bool checkBatch(const Config &config, int64_t ranks, int64_t batch, int64_t &accumulation,
                ConfigReport report);

/// Prints the table of foreign keys as Markdown.
void printConfigKeys(llvm::raw_ostream &os);

/// Returns the options that the table of foreign keys names.
std::vector<std::string> getConfigTargets();

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_CONFIG_H
