//===- NumberTextTest.cpp - Tests of numbers for messages -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/NumberText.h"
#include "core/Error.h"
#include "gtest/gtest.h"
#include <limits>

using namespace fsdprt;

TEST(NumberText, NaNHasNoSign) {
  // The sign of a NaN must not be printed. On x86, 0 / 0 is a NaN whose sign bit is set.
  for (double nan : {std::copysign(NAN, -1.0), std::copysign(NAN, 1.0)})
    EXPECT_EQ(format("%.4f %g", printableNumber(nan), printableNumber(nan)), "nan nan");
  double infinity = std::numeric_limits<double>::infinity();
  for (double number : {-infinity, -1.5, 0.0, 2.25, infinity})
    EXPECT_EQ(printableNumber(number), number);
}
