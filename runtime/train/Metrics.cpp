//===- Metrics.cpp - Machine-readable numbers of a step ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In JSON, a number is written with the fewest digits from which a reader obtains the same value.
// Non-finite numbers are written as null.
//
//===----------------------------------------------------------------------===//

#include "train/Metrics.h"
#include "core/Error.h"
#include "io/InputFile.h"
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <sys/stat.h>

using namespace fsdprt;
using ull = unsigned long long;

/// Returns the size in bytes of the beginning of `text` up to the end of the line of step `last`.
/// An incomplete line at the end of `text` does not count. Throws Error if one of the lines up to
/// that end does not begin with {"step": and a number.
static uint64_t bytesUpToStep(const std::string &path, std::string_view text, uint64_t last) {
  static constexpr std::string_view begin = "{\"step\":";
  uint64_t kept = 0;
  while (kept < text.size()) {
    size_t end = text.find('\n', kept);
    uint64_t step = 0;
    const char *digits = text.data() + kept + begin.size();
    if (text.compare(kept, begin.size(), begin) != 0 ||
        std::from_chars(digits, text.data() + text.size(), step).ec != std::errc())
      badInput("%s: expected lines of metrics to append to, found other content at byte %llu",
               path.c_str(), (ull)kept);
    if (end == text.npos || step > last)
      break;
    kept = end + 1;
  }
  return kept;
}

void Metrics::open(const std::string &path, const std::string &folder, uint64_t stepsBefore) {
  struct stat status;
  if (!folder.empty())
    events.open(folder, stepsBefore + 1);
  if (path.empty())
    return;
  bool there = stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (stepsBefore == 0 || !there)
    return lines.open(path, false);
  InputFile before(path, "the metrics of the previous run");
  std::string text = before.readAll(before.size());
  lines.openBehind(path, bytesUpToStep(path, text, stepsBefore));
}

void Metrics::commit() {
  if (lines.isOpen())
    lines.commit();
  if (events.isOpen())
    events.commit();
}

void Metrics::begin(uint64_t step) {
  used = static_cast<size_t>(std::snprintf(text, sizeof text, "{\"step\":%llu", (ull)step));
  if (events.isOpen())
    events.begin(step);
}

void Metrics::addKey(const char *tag) {
  const char *slash = std::strrchr(tag, '/');
  used += static_cast<size_t>(
      std::snprintf(text + used, capacity(), ",\"%s\":", slash ? slash + 1 : tag));
}

void Metrics::add(const char *tag, uint64_t value) {
  addKey(tag);
  used += static_cast<size_t>(std::snprintf(text + used, capacity(), "%llu", (ull)value));
  if (events.isOpen())
    events.add(tag, static_cast<float>(value));
}

template <typename Float>
void Metrics::addReal(const char *tag, Float value) {
  addKey(tag);
  if (std::isfinite(value))
    used =
        static_cast<size_t>(std::to_chars(text + used, text + sizeof text - 3, value).ptr - text);
  else
    used += static_cast<size_t>(std::snprintf(text + used, capacity(), "null"));
  if (events.isOpen())
    events.add(tag, static_cast<float>(value));
}

void Metrics::add(const char *tag, float value) { addReal(tag, value); }
void Metrics::add(const char *tag, double value) { addReal(tag, value); }

void Metrics::end() {
  std::memcpy(text + used, "}\n", 2);
  if (lines.isOpen())
    lines.write(text, used + 2);
  if (events.isOpen())
    events.end();
}
