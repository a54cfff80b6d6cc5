//===- NonFiniteLimit.cpp - Limit of non-finite steps -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/NonFiniteLimit.h"
#include "core/NumberText.h"
#include <cstdio>

using namespace fsdprt;
using ull = unsigned long long;

bool NonFiniteLimit::allows(const TrainingRun &run, uint64_t number, const float *block) {
  bool scales = block[FSDPRT_BLOCK_LOSS_SCALE] > 0 && block[FSDPRT_BLOCK_GROWTH] >= 0;
  if (block[FSDPRT_BLOCK_FINITE] != 0 || !run.options.onlyKinds.empty()) {
    inARow = 0;
    return true;
  }
  ++inARow;
  uint64_t allowed = run.options.nonfiniteSteps.value_or(scales ? 49 : 0);
  auto value = [&](int slot) { return printableNumber(static_cast<double>(block[slot])); };
  char scale[64] = "";
  if (scales)
    std::snprintf(scale, sizeof scale, "; loss scale now %g",
                  static_cast<double>(block[FSDPRT_BLOCK_LOSS_SCALE]));
  run.reporter.line("step %llu: not finite: loss %g, gradient norm %g: no parameter was changed%s",
                    (ull)number, value(FSDPRT_BLOCK_LOSS), value(FSDPRT_BLOCK_GRAD_NORM), scale);
  if (inARow <= allowed)
    return true;
  if (inARow > 1)
    std::snprintf(why, sizeof why, "stopped at step %llu, %llu non-finite steps in a row",
                  (ull)number, (ull)inARow);
  else
    std::snprintf(why, sizeof why, "stopped at step %llu", (ull)number);
  return false;
}
