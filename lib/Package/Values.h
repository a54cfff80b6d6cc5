//===- Values.h - Initial values that came with a model ---------*- C++ -*-===//
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

/// The section of values of an artifact: where each parameter's are, and the bytes, which stay
/// where the module has them.
struct Values {
  struct Place {
    Type element;
    uint64_t offset = 0, bytes = 0;
  };
  llvm::StringMap<Place> places; // by parameter
  std::vector<ArrayRef<char>> pieces;
  std::deque<std::vector<char>> unpacked; // pieces that the module holds in another form
  uint64_t size = 0;
};

/// Collects the values of all parameters of the module's units, equal ones once. They must outlive
/// the result.
FailureOr<Values> collectValues(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_PACKAGE_VALUES_H
