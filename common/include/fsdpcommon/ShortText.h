//===- ShortText.h - Texts of files in messages ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_SHORTTEXT_H
#define FSDPCOMMON_SHORTTEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace fsdpcommon {

/// Returns at most about `most` bytes of `text`, which comes from a file, in a form that messages
/// can print. Each control character, and each byte that is not part of a character in UTF-8, is
/// replaced by '?'. A text that was shortened ends with "...". If `most` is npos, the text is not
/// shortened.
std::string shortText(std::string_view text, size_t most = 80);

/// Returns a message of any length, in which the same characters except line breaks are replaced.
std::string printableMessage(std::string_view text);

/// Returns true if messages and JSON can contain `text` as it is: the text is UTF-8 and has no
/// control character.
bool isPrintable(std::string_view text);

} // namespace fsdpcommon

#endif // FSDPCOMMON_SHORTTEXT_H
