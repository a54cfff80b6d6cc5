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
  /// Largest allowed relative error in f64. For types narrower than f64, the limit is higher.
  double tolerance = 1e-6;
  double step = 1e-4; ///< step h of the finite differences
  uint64_t seed = 1;
  /// If an argument has at most this number of elements, all elements are checked.
  int64_t allElements = 64;
  int64_t elements = 6;   ///< number of random elements that are checked in larger arguments
  int64_t directions = 3; ///< number of random directions in which larger arguments are checked
};

struct Row {
  std::string function, argument;
  RankedTensorType type;
  int64_t numChecked = 0;
  double largest = 0; ///< largest absolute value of the gradient
  double worst = 0;   ///< largest relative error
  double bound = 0;
  unsigned precision = 53; ///< number of significand bits of the function's narrowest float
  bool isNarrow = false;   ///< true if a float type of the function is narrower than f64
  std::string notFinite;   ///< name of the first value that is NaN or infinite, or empty
  bool ok = true;
};

/// Returns the largest allowed relative error of a function of `numOps` ops whose narrowest float
/// type has `precision` significand bits.
double boundFor(unsigned precision, unsigned numOps, double tolerance);

/// Returns a row for each checked argument. Fails if a function cannot be run.
FailureOr<std::vector<Row>> check(const Function &function, Engine &forward, Engine &gradient,
                                  const CheckOptions &options);

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_CHECK_H
