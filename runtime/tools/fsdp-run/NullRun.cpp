//===- NullRun.cpp - A walk over all programs, without kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     null device: 8 ranks, all of one kind
//     walked 3,456 commands, 512 starts and waits, 1,234,567,890 bytes of accesses in 0.012 s
//     45 collectives completed, over 2 pairs of mesh group and channel
//     no faults found
//
//===----------------------------------------------------------------------===//

#include "NullRun.h"
#include "core/FutexEvent.h"
#include "core/NumberText.h"
#include "train/Handles.h"
#include <charconv>
#include <vector>

using namespace fsdprt;

static constexpr size_t mostPrinted = 20;

namespace {
struct Found {
  std::vector<std::pair<std::string, uint64_t>> all;
};
} // namespace

static std::pair<uint64_t, std::string> parsePeer(const std::string &text) {
  size_t at = text.find('=');
  uint64_t rank = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + std::min(at, text.size()), rank);
  if (at == std::string::npos || problem != std::errc() || end != text.data() + at)
    badInput("--peer: expected RANK=FILE, found '%s'", printable(text).c_str());
  return {rank, text.substr(at + 1)};
}

static fsdprt_walk walkFile(const Options &options, Found &found) {
  std::vector<uint64_t> ranks;
  std::vector<std::string> files;
  for (const std::string &peer : options.peers) {
    auto [rank, file] = parsePeer(peer);
    ranks.push_back(rank);
    files.push_back(file);
  }
  std::vector<const char *> names;
  for (const std::string &file : files)
    names.push_back(file.c_str());
  fsdprt_walk_options asked = {sizeof asked, options.steps, ranks.size(), ranks.data(),
                               names.data()};
  fsdprt_walk result = {};
  result.struct_size = sizeof result;
  auto add = [](void *to, const char *text, uint64_t times) {
    static_cast<Found *>(to)->all.emplace_back(text, times);
  };
  call(fsdprt_artifact_walk, options.artifact.c_str(),
       static_cast<const fsdprt_walk_options *>(&asked), &result,
       static_cast<void (*)(void *, const char *, uint64_t)>(add), static_cast<void *>(&found));
  return result;
}

int fsdprt::walk(const Options &options, Printer &printer) {
  Found found;
  double start = monotonicSeconds();
  fsdprt_walk result = walkFile(options, found);
  double seconds = monotonicSeconds() - start;
  char a[32], b[32], c[32];
  std::string kinds = result.kinds == result.ranks ? "each of a different kind"
                      : result.kinds == 1 ? "all of one kind"
                                          : "of " + std::to_string(result.kinds) + " kinds";
  if (result.walked_kinds != result.kinds)
    kinds += ", " + std::to_string(result.walked_kinds) + " of them walked";
  printer.line("null device: %s rank%s%s", grouped(result.ranks, a), result.ranks == 1 ? "" : "s, ",
               result.ranks == 1 ? "" : kinds.c_str());
  printer.line("walked %s commands, %s starts and waits, %s bytes of accesses in %.3f s",
               grouped(result.commands, a), grouped(result.events, b), grouped(result.bytes, c),
               seconds);
  printer.line("%s collectives completed, over %s pair%s of mesh group and channel",
               grouped(result.collectives, a), grouped(result.communicators, b),
               result.communicators == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(found.all.size(), mostPrinted); ++i)
    printer.line("%s%s", found.all[i].first.c_str(),
                 found.all[i].second > 1
                     ? (" (and " + std::to_string(found.all[i].second - 1) + " more times)").c_str()
                     : "");
  if (found.all.size() > mostPrinted)
    printer.line("and %zu more", found.all.size() - mostPrinted);
  if (found.all.empty()) {
    printer.line("no faults found");
    return 0;
  }
  throw Error(FSDPRT_FAILED,
              format("%s: the null device found %zu fault%s", options.artifact.c_str(),
                     found.all.size(), found.all.size() == 1 ? "" : "s"));
}
