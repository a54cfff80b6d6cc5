//===- Agreement.cpp - Values that must be equal on all ranks ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares lines by name, because two versions of the runtime may write different lines.
//
//===----------------------------------------------------------------------===//

#include "core/Agreement.h"
#include "core/Error.h"
#include <algorithm>
#include <sstream>

using namespace fsdprt;

static constexpr size_t longestDetail = 100;

/// Replaces newlines and tabs by spaces, because they separate the lines and the details of an
/// agreement.
static std::string plain(std::string text) {
  for (char &c : text)
    c = c == '\n' || c == '\t' ? ' ' : c;
  return text;
}

void Agreement::add(const std::string &name, const std::string &value, const std::string &detail) {
  std::string line = plain(name + "=" + value);
  if (detail.size() > longestDetail)
    line += "\t..." + plain(detail.substr(detail.size() - longestDetail));
  else if (!detail.empty())
    line += "\t" + plain(detail);
  if (lines.size() + line.size() + 1 > limit)
    failed("the values that ranks must agree on are too long: expected at most %zu bytes, found "
           "more at '%s'",
           limit, printable(name).c_str());
  lines += line + "\n";
}

namespace {
struct Line {
  std::string name, value, detail;
};
} // namespace

static std::vector<Line> linesOf(const std::string &text) {
  std::vector<Line> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    size_t tab = std::min(line.find('\t'), line.size()), equals = std::min(line.find('='), tab);
    lines.push_back({line.substr(0, equals),
                     equals < tab ? line.substr(equals + 1, tab - equals - 1) : "",
                     tab < line.size() ? line.substr(tab + 1) : ""});
  }
  return lines;
}

/// Returns the line with the name `name`, or an empty line if no such line exists.
static Line find(const std::vector<Line> &lines, const std::string &name) {
  for (const Line &line : lines)
    if (line.name == name)
      return line;
  return {};
}

/// Returns the value and the detail of a line, for example "'64 bytes' (a.txt)".
static std::string textOf(const Line &line) {
  return (line.value.empty() ? "not set" : "'" + printable(line.value) + "'") +
         (line.detail.empty() ? "" : " (" + printable(line.detail) + ")");
}

void fsdprt::compareAgreements(const std::vector<std::string> &texts) {
  std::vector<Line> first = linesOf(texts[0]);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0])
      continue;
    std::vector<Line> other = linesOf(texts[rank]);
    for (const std::vector<Line> *names : {&first, &other})
      for (const Line &line : *names)
        if (Line a = find(first, line.name), b = find(other, line.name); a.value != b.value)
          badInput("ranks do not agree: %s is %s on rank 0 and %s on rank %zu; start all ranks of "
                   "a job with the same program, model, options and inputs, and give each job its "
                   "own address",
                   printable(line.name).c_str(), textOf(a).c_str(), textOf(b).c_str(), rank);
  }
}
