//===- OverlappingToy.h - A step with hidden communication ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_SIMULATE_OVERLAPPINGTOY_H
#define FSDPRT_TEST_SIMULATE_OVERLAPPINGTOY_H

#include "testing/toy/ToyModel.h"
#include <algorithm>

namespace fsdprt::test {

/// Returns the toy model on 8 ranks. Each kernel has 1e6 multiply-adds. The sum of losses and the
/// gather of norms last until the last kernel of the step needs them.
inline fb::ManifestT overlappingToy() {
  fb::ManifestT manifest = toyManifest({4, 2, true});
  for (auto &kernel : manifest.kernels)
    kernel->multiply_adds = 1000000;
  for (auto &program : manifest.programs) {
    if (program->name != "step")
      continue;
    auto last = program->commands.end() - 1;
    for (const char *label : {"norms", "mean loss"})
      for (auto command = program->commands.begin(); command != last; ++command)
        if ((*command)->body.type == fb::Body::Wait && (*command)->label == label) {
          std::rotate(command, command + 1, last);
          break;
        }
  }
  return manifest;
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_SIMULATE_OVERLAPPINGTOY_H
