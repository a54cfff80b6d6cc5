//===- Config.h - A file of options -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What --config=FILE.json says, as settings of options: in our names (Options.def), or in those of
// Hugging Face and DeepSpeed (ConfigKeys.def). No IR, and no command line.
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

/// A key of the file, as it is written there.
struct ConfigOrigin {
  unsigned line = 0, column = 0;
  std::string key;
};

/// `--OPTION=VALUE`; several values only where the option takes a list.
struct ConfigSetting {
  std::string option;
  std::vector<std::string> values;
  ConfigOrigin origin;
};

/// A number that is compared with what is compiled: sets nothing.
struct ConfigFact {
  int64_t value = 0;
  ConfigOrigin origin;
};

struct Config {
  /// In the order of the file, an option once.
  std::vector<ConfigSetting> settings;
  /// Sequences of a rank and micro-batch; ranks; sequences of a step on all ranks.
  std::optional<ConfigFact> batch, ranks, totalBatch;

  const ConfigSetting *find(llvm::StringRef option) const;
};

/// Says what is wrong, or (`isError` false) what was accepted without effect.
using ConfigReport =
    llvm::function_ref<void(bool isError, const ConfigOrigin &place, const llvm::Twine &message)>;

/// Reads a file; nothing when an error was reported.
std::optional<Config> readConfig(llvm::StringRef path, ConfigReport report);

/// Compares what the file says with `ranks` and with the `batch` of the model (0: it has none).
/// `accumulation` is compared, too, or follows where it is 0. False when an error was reported.
bool checkBatch(const Config &config, int64_t ranks, int64_t batch, int64_t &accumulation,
                ConfigReport report);

/// The table of foreign keys, as Markdown.
void printConfigKeys(llvm::raw_ostream &os);

/// Options that the table names.
std::vector<std::string> getConfigTargets();

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_CONFIG_H
