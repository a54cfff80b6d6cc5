//===- Agreement.cpp - What all ranks have to say the same of ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compared line by line, by name: ranks with other versions of the runtime may have other lines.
//
//===----------------------------------------------------------------------===//

#include "collectives/Agreement.h"
#include "core/Error.h"
#include <algorithm>
#include <sstream>

using namespace fsdprt;

void Agreement::add(const std::string &name, const std::string &value) {
  std::string line = name + "=" + value;
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (lines.size() + line.size() + 1 > limit)
    failed("what ranks have to agree on is too long: expected at most %zu bytes, found more, at '%s'", limit,
           printable(name).c_str());
  lines += line + "\n";
}

namespace {
struct Line {
  std::string name, value;
};
} // namespace

static std::vector<Line> linesOf(const std::string &text) {
  std::vector<Line> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    size_t equals = std::min(line.find('='), line.size());
    lines.push_back({line.substr(0, equals), equals < line.size() ? line.substr(equals + 1) : ""});
  }
  return lines;
}

static std::string valueOf(const std::vector<Line> &lines, const std::string &name) {
  for (const Line &line : lines)
    if (line.name == name)
      return line.value.empty() ? "nothing" : "'" + printable(line.value) + "'";
  return "nothing";
}

void fsdprt::compareAgreements(const std::vector<std::string> &texts) {
  std::vector<Line> first = linesOf(texts[0]);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0])
      continue;
    std::vector<Line> other = linesOf(texts[rank]);
    for (const std::vector<Line> *names : {&first, &other})
      for (const Line &line : *names)
        if (std::string a = valueOf(first, line.name), b = valueOf(other, line.name); a != b)
          badInput("ranks do not agree: %s is %s on rank 0 and %s on rank %zu; start all of them with the same program, "
                   "model and options",
                   printable(line.name).c_str(), a.c_str(), b.c_str(), rank);
  }
}
