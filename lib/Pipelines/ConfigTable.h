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

/// `THEIRS|THEIRS = OURS`
struct ConfigMapping {
  llvm::SmallVector<llvm::StringRef> theirs;
  llvm::StringRef ours;
};

/// A row of ConfigKeys.def, taken apart.
struct ConfigRow {
  ConfigFamily family;
  llvm::SmallVector<llvm::StringRef> keys;
  ConfigRowKind kind;
  llvm::SmallVector<llvm::StringRef> options;
  llvm::SmallVector<ConfigMapping> mappings;
  std::string why;
};

/// The row of a key, its path joined by dots; null when there is none. A key in full
/// wins over one that ends in `.*`.
const ConfigRow *findConfigRow(llvm::StringRef key);
/// An object whose members have rows.
bool isConfigContainer(llvm::StringRef key);
/// All keys, as people may have meant to write them.
std::vector<std::string> spellConfigKeys();

} // namespace mlir::fsdp

#endif // FSDP_LIB_PIPELINES_CONFIGTABLE_H
