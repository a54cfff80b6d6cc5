//===- ParameterList.h - Which arguments are parameters ---------*- C++ -*-===//
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

/// One item of `--params=0-148,150,h.*`: a range of positions or a name with `*`.
struct ParameterItem {
  std::string text;
  int64_t first = -1, last = -1; // a range when first ≥ 0
  std::optional<llvm::GlobPattern> name;
  bool used = false;
};

/// One entry of the JSON sidecar.
struct SidecarEntry {
  std::optional<int64_t> index;
  std::string name, resource;
  std::string rename;
  InitAttr init;
  bool frozen = false;
  bool used = false;

  std::string describe() const;
};

/// What the user says about parameters.
struct ParameterList {
  std::vector<ParameterItem> items;
  std::vector<SidecarEntry> sidecar;
  bool isAuto = false; ///< `--params=auto`: a guess is wanted

  /// Returns true if it names a parameter.
  bool namesAny() const { return !items.empty() || !sidecar.empty(); }

  /// Parses `--params` and the file of `--params-file`; errors are emitted at `loc`.
  static FailureOr<ParameterList> parse(StringRef params, StringRef file, Location loc);

  /// Whether an argument at `position` called `name` is listed; marks the item.
  bool lists(int64_t position, StringRef name);

  /// Returns true if an item is a pattern that matches `name`; marks these items.
  bool listsName(StringRef name);

  /// The sidecar's entry for an argument or constant; null when there is none.
  SidecarEntry *findSidecar(std::optional<int64_t> position, StringRef name, StringRef resource);
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_IMPORT_PARAMETERLIST_H
