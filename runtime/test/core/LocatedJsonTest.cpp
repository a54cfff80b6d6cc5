//===- LocatedJsonTest.cpp - The JSON reader --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdpcommon/LocatedJson.h"
#include "fsdpcommon/ClusterFile.h"
#include "test/io/Scratch.h"
#include <gtest/gtest.h>

using namespace fsdpcommon;
using fsdprt::test::Scratch;

/// Parses a text. Returns the error in the form "LINE:COLUMN: MESSAGE", or "" if the text is valid
/// JSON.
static std::string problemOf(const std::string &text) {
  JsonProblem problem;
  if (parseJson(text, problem))
    return "";
  return std::to_string(problem.line) + ":" + std::to_string(problem.column) + ": " +
         problem.message;
}

TEST(LocatedJson, NumbersKeepTheirRange) {
  JsonProblem problem;
  auto root = parseJson("[18446744073709551615, 18446744073709551616, -9223372036854775808, 1e2, "
                        "1e-400, \"7\", 0.1]",
                        problem);
  ASSERT_TRUE(root);
  const std::vector<JsonValue> &all = root->elements;
  EXPECT_EQ(all[0].asUnsigned(), UINT64_MAX);
  EXPECT_EQ(all[0].asSigned(), std::nullopt);
  EXPECT_EQ(all[1].asUnsigned(), std::nullopt);
  EXPECT_EQ(all[1].asDouble(), 18446744073709551616.0);
  EXPECT_EQ(all[2].asSigned(), INT64_MIN);
  EXPECT_EQ(all[2].asUnsigned(), std::nullopt);
  EXPECT_EQ(all[3].asUnsigned(), std::nullopt);
  EXPECT_EQ(all[3].asDouble(), 100);
  EXPECT_EQ(all[4].asDouble(), 0);
  EXPECT_EQ(all[5].asDouble(), std::nullopt);
  EXPECT_EQ(all[6].asDouble(), 0.1);
}

TEST(LocatedJson, DepthIsLimited) {
  for (char bracket : {'[', '{'}) {
    std::string level = bracket == '[' ? "[" : "{\"a\":", deep;
    for (int i = 0; i < 100'000; ++i)
      deep += level;
    std::string column = bracket == '[' ? "65" : "321";
    EXPECT_EQ(problemOf(deep), "1:" + column + ": nested more than 64 deep");
  }
  EXPECT_EQ(problemOf(std::string(64, '[') + std::string(64, ']')), "");
}

// An earlier version of the parser needed quadratic time for a string that consists of backslashes.
TEST(LocatedJson, LongStringsTakeLinearTime) {
  JsonProblem problem;
  auto root = parseJson("[\"" + std::string(8 << 20, '\\') + "\", 7]", problem);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->elements[0].text, std::string(4 << 20, '\\'));
  EXPECT_EQ(root->elements[0].column, 2u);
  EXPECT_EQ(root->elements[1].column, (8u << 20) + 6);
}

TEST(LocatedJson, MessagesAreUtf8) {
  EXPECT_EQ(problemOf("[\"bias+\x95\"]"),
            "1:8: not JSON: syntax error while parsing value - invalid string: ill-formed UTF-8 "
            "byte; last read: '\"bias+?'");
}

TEST(LocatedJson, MessagesAreShort) {
  std::string longText(1 << 20, 'x');
  for (const std::string &text :
       {"[" + longText + "]", "[\"" + longText + "\" 7]", "[1" + std::string(1 << 20, '0') + "]",
        "{\"" + longText + "\": 1, \"" + longText + "\": 2}"}) {
    EXPECT_NE(problemOf(text), "");
    EXPECT_LT(problemOf(text).size(), 300u) << problemOf(text).substr(0, 1000);
  }
  Scratch cluster("{\"name\": \"c\", \"\\u001b[31m" + longText + "\": 1}");
  JsonProblem ofCluster;
  ASSERT_FALSE(readCluster(cluster.path, ofCluster));
  EXPECT_EQ(ofCluster.message.rfind("a cluster: unknown member \"?[31mxxx", 0), 0u)
      << ofCluster.message.substr(0, 100);
  EXPECT_LT(ofCluster.message.size(), 1100u);
  JsonProblem problem;
  auto root = parseJson("[\"" + longText + "\", \"a\\u001b[31m\"]", problem);
  ASSERT_TRUE(root);
  EXPECT_LT(root->elements[0].describe().size(), 120u);
  EXPECT_EQ(root->elements[1].describe(), "the string \"a?[31m\"");
}
