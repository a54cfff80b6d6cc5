//===- Values.h - Initial values of a model ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PACKAGE_VALUES_H
#define FSDP_LIB_PACKAGE_VALUES_H

#include "fsdp/IR/FSDP.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <vector>

namespace mlir::fsdp {

/// The section of an artifact that contains the values of parameters. This structure contains an
/// offset for each parameter, and references to the bytes. Most of the bytes are in the memory of
/// the module.
struct Values {
  struct Place {
    Type element;
    uint64_t offset = 0, bytes = 0;
  };
  llvm::StringMap<Place> places; // offsets by parameter
  std::vector<ArrayRef<char>> pieces;
  // One byte for each boolean that the module stores as a bit.
  std::deque<std::vector<char>> unpacked;
  uint64_t size = 0;
};

/// Collects the values of the parameters of all units. Equal values are stored once. The module
/// must outlive the result.
FailureOr<Values> collectValues(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_PACKAGE_VALUES_H
