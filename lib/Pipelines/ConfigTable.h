//===- ConfigTable.h - The table of foreign keys ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PIPELINES_CONFIGTABLE_H
#define FSDP_LIB_PIPELINES_CONFIGTABLE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

enum class ConfigFamily { FSDP, Trainer, DeepSpeed };
enum class ConfigRowKind { flag, integer, number, word, words, pair, any };

/// A mapping of values that ConfigKeys.def writes as `THEIRS|THEIRS = OURS`.
struct ConfigMapping {
  llvm::SmallVector<llvm::StringRef> theirs;
  llvm::StringRef ours;
};

/// A parsed row of ConfigKeys.def.
struct ConfigRow {
  ConfigFamily family;
  llvm::SmallVector<llvm::StringRef> keys;
  ConfigRowKind kind;
  llvm::SmallVector<llvm::StringRef> options;
  llvm::SmallVector<ConfigMapping> mappings;
  std::string why;
};

/// Returns the row of a key, or null. Dots join the components of the key. A row with exactly this
/// key takes precedence over a row whose key ends in `.*`.
const ConfigRow *findConfigRow(llvm::StringRef key);
/// Returns true if the value of the key is an object, and members of this object have rows.
bool isConfigContainer(llvm::StringRef key);
/// Returns all accepted spellings of keys, to suggest one for an unknown key.
std::vector<std::string> spellConfigKeys();

} // namespace mlir::fsdp

#endif // FSDP_LIB_PIPELINES_CONFIGTABLE_H
