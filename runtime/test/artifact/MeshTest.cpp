//===- MeshTest.cpp - Tests of the grid of ranks ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/Mesh.h"
#include <gtest/gtest.h>

using fsdprt::Mesh;

TEST(Mesh, TextHasTheAxesAndTheirSizes) {
  EXPECT_EQ(Mesh().text(), "one rank");
  EXPECT_EQ(Mesh({{"replicate", 2}, {"shard", 3}}).text(), "replicate=2,shard=3");
  EXPECT_EQ(Mesh({{"shard", 6}, {"tensor", 2}}, {}, 3).text(), "shard=2,context=3,tensor=2");
}

TEST(Mesh, TextIsPrintableForAnyName) {
  EXPECT_EQ(Mesh({{"shar\xcd", 2}}).text(), "shar?=2");
  EXPECT_EQ(Mesh({{std::string("a\x1b\0b", 4), 2}}).text(), "a??b=2");
}
