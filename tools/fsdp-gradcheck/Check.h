//===- Check.h - Gradients against finite differences -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_CHECK_H
#define FSDP_GRADCHECK_CHECK_H

#include "Engine.h"
#include "Subject.h"

namespace mlir::fsdp::gradcheck {

struct CheckOptions {
  double tolerance = 1e-6; ///< relative bound in f64; it is larger for narrower types
  double step = 1e-4;      ///< step of the differences
  uint64_t seed = 1;
  int64_t allElements = 64; ///< arguments up to this size are checked in every element
  int64_t elements = 6;     ///< random elements of larger arguments
  int64_t directions = 3;   ///< random directions of larger arguments
};

/// Result of the check of one argument.
struct Row {
  std::string function, argument;
  RankedTensorType type;
  int64_t numChecked = 0;
  double largest = 0; ///< largest element of the gradient
  double worst = 0;   ///< largest relative error
  double bound = 0;
  unsigned precision = 53; ///< bits of the narrowest float
  bool isNarrow = false;   ///< true if a float of the function is narrower than f64
  std::string notFinite;   ///< first value that is NaN or infinite, or empty
  bool ok = true;
};

/// Returns the bound of the relative error for a function of `numOps` ops whose narrowest float has
/// `precision` bits.
double boundFor(unsigned precision, unsigned numOps, double tolerance);

/// Returns one row per checked argument. Fails if a function cannot be run.
FailureOr<std::vector<Row>> check(const Function &function, Engine &forward, Engine &gradient,
                                  const CheckOptions &options);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_CHECK_H
