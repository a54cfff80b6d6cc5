//===- ShortTextTest.cpp - Tests of texts for messages ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdpcommon/ShortText.h"
#include "core/Error.h"
#include "gtest/gtest.h"

using fsdpcommon::isPrintable;
using fsdpcommon::printableMessage;
using fsdpcommon::shortText;
using namespace std::string_literals;

TEST(ShortText, KeepsPrintableCharacters) {
  for (const std::string &text : {""s, "h.0.bias ~"s, "größe"s, "\u0800 \uffff 語"s,
                                  "\U00010000 \U0010ffff \u00a0 \ud7ff \ue000"s})
    EXPECT_EQ(shortText(text), text);
}

TEST(ShortText, ReplacesWhatCannotBePrinted) {
  EXPECT_EQ(shortText("a\n\x1b[31m\0\x7f"s), "a??[31m??");
  EXPECT_EQ(shortText("\u0080\u009b31m"), "??31m");
  EXPECT_EQ(shortText("bias+\x95"), "bias+?");
  EXPECT_EQ(shortText("\xff\xfe\xf5 \x80"), "??? ?");
  EXPECT_EQ(shortText("\xc3"), "?");           // cut
  EXPECT_EQ(shortText("\xe8\xaa!"), "\?\?!");  // cut, without a trigraph
  EXPECT_EQ(shortText("\xc0\xaf"), "??");      // longer than necessary
  EXPECT_EQ(shortText("\xe0\x9f\xbf"), "???"); // longer than necessary
  EXPECT_EQ(shortText("\xf0\x8f\xbf\xbf"), "????");
  EXPECT_EQ(shortText("\xed\xa0\x80"), "???");      // a surrogate
  EXPECT_EQ(shortText("\xf4\x90\x80\x80"), "????"); // above 0x10ffff
}

TEST(ShortText, CutsBetweenCharacters) {
  EXPECT_EQ(shortText("abcd", 4), "abcd");
  EXPECT_EQ(shortText("abcde", 4), "abcd...");
  EXPECT_EQ(shortText("abc語", 5), "abc...");
  EXPECT_EQ(shortText("abc語", 6), "abc語");
  EXPECT_EQ(fsdprt::printable(std::string(200, 'x') + "\xff"), std::string(120, 'x') + "...");
}

TEST(ShortText, MessagesKeepLineBreaks) {
  std::string longText(1000, 'x');
  EXPECT_EQ(printableMessage("a\x1b\n\nb\xff" + longText + "\n"), "a?\n\nb?" + longText + "\n");
  EXPECT_EQ(shortText(longText, std::string::npos), longText);
}

TEST(ShortText, IsPrintable) {
  for (const char *good : {"", "h.0.weight", "\u00e9\u8a9e"})
    EXPECT_TRUE(isPrintable(good)) << good;
  for (const char *bad : {"a\n", "\x1b", "\x7f", "\u009b", "\xff", "\xc3"})
    EXPECT_FALSE(isPrintable(bad)) << shortText(bad);
}
