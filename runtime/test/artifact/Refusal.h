//===- Refusal.h - Errors of refused files ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_ARTIFACT_REFUSAL_H
#define FSDPRT_TEST_ARTIFACT_REFUSAL_H

#include "artifact/Artifact.h"
#include "core/Error.h"
#include <gtest/gtest.h>

namespace fsdprt::test {

/// Loads a file. Returns the error message, or "" if the loader accepts the file. An error message
/// must begin with the file name.
inline std::string refusal(const std::vector<std::byte> &file) {
  try {
    Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT) << error.what();
    EXPECT_EQ(error.message.rfind("toy.fsdp: ", 0), 0u) << error.what();
    return error.message;
  }
  return "";
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_ARTIFACT_REFUSAL_H
