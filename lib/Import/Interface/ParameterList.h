//===- ParameterList.h - --params and --params-file -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_IMPORT_PARAMETERLIST_H
#define FSDP_LIB_IMPORT_PARAMETERLIST_H

#include "fsdp/IR/FSDP.h"
#include "llvm/Support/GlobPattern.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// One item of an option such as `--params=0-148,150,h.*`. An item is a range of positions, or a
/// name.
struct ParameterItem {
  std::string text;
  int64_t first = -1, last = -1; // first and last position; -1 if the item is a name
  std::optional<llvm::GlobPattern> name;
  bool used = false;
};

/// One entry of the JSON file of `--params-file`. Exactly one of index, name and resource is set.
struct SidecarEntry {
  std::optional<int64_t> index;
  std::string name, resource;
  std::string rename;
  InitAttr init;
  bool frozen = false;
  bool used = false;

  std::string describe() const;
};

/// Contents of `--params` and of the file of `--params-file`.
struct ParameterList {
  std::vector<ParameterItem> items;
  std::vector<SidecarEntry> sidecar;
  bool isAuto = false; ///< true for `--params=auto`; the pass then guesses without a warning

  /// Returns whether one of the options names a parameter.
  bool namesAny() const { return !items.empty() || !sidecar.empty(); }

  /// Parses `--params` and the file of `--params-file`. Emits errors at `loc` or in the file.
  static FailureOr<ParameterList> parse(StringRef params, StringRef file, Location loc);

  /// Returns whether an item of `--params` matches an argument. Marks each item that matches as
  /// used.
  bool lists(int64_t position, StringRef name);

  /// Returns whether a name in `--params` matches `name`. Marks each item that matches as used.
  bool listsName(StringRef name);

  /// Returns the entry of the sidecar for an argument or constant, and marks this entry as used.
  /// Returns null if the sidecar has no such entry.
  SidecarEntry *findSidecar(std::optional<int64_t> position, StringRef name, StringRef resource);
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_PARAMETERLIST_H
