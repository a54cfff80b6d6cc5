//===- ProfileTable.cpp - The profile of a run as a table -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     profile: 19 steps of 812.345 ms on rank 0
//        ms/step   share  runs/step    MB/step    GB/s  kind
//        601.123  74.0 %         97     2310.1     3.8  contract
//     ...
//        ms/step   share  runs/step    MB/step    GB/s  kernel
//        120.456  14.8 %         12      310.2     2.6  k_3f2a contract, first: contract h.0.mlp.c_fc.weight
//
// What is left of the step's time, between the commands, is a line of the first
// table. MB and GB are 10^6 and 10^9 bytes.
//
//===----------------------------------------------------------------------===//

#include "ProfileTable.h"
#include "Handles.h"
#include <algorithm>
#include <string>
#include <vector>

using namespace fsdprt;
using ull = unsigned long long;
using Entry = fsdprt_profile_entry;

namespace {
class ProfileTable {
public:
  ProfileTable(std::vector<Entry> entries, uint64_t total, uint64_t steps, Printer &printer)
      : entries(std::move(entries)), total(total), steps(static_cast<double>(steps)), printer(printer) {}
  void print() const;

private:
  std::vector<Entry> byKind() const;
  void printRow(const Entry &entry, const std::string &what) const;

  std::vector<Entry> entries;
  uint64_t total;
  double steps;
  Printer &printer;
};
} // namespace

/// The sums of each kind, in entries of the kind's name, and the time outside
/// of all.
std::vector<Entry> ProfileTable::byKind() const {
  std::vector<Entry> kinds;
  uint64_t left = total;
  for (const Entry &entry : entries) {
    auto same = [&](const Entry &kind) { return std::string(kind.kind) == entry.kind; };
    auto kind = std::find_if(kinds.begin(), kinds.end(), same);
    left -= std::min(left, entry.nanoseconds);
    if (kind == kinds.end()) {
      kinds.push_back(entry);
      continue;
    }
    kind->nanoseconds += entry.nanoseconds;
    kind->runs += entry.runs;
    kind->bytes += entry.bytes;
  }
  kinds.push_back({sizeof(Entry), "", "between commands", "", 0, left, 0});
  std::sort(kinds.begin(), kinds.end(), [](const Entry &a, const Entry &b) { return a.nanoseconds > b.nanoseconds; });
  return kinds;
}

void ProfileTable::printRow(const Entry &entry, const std::string &what) const {
  double nanoseconds = static_cast<double>(entry.nanoseconds), bytes = static_cast<double>(entry.bytes);
  printer.line("%10.3f %6.1f %% %10.0f %10.1f %7.1f  %s", nanoseconds / steps / 1e6,
               total ? 100 * nanoseconds / static_cast<double>(total) : 0, static_cast<double>(entry.runs) / steps,
               bytes / steps / 1e6, entry.nanoseconds ? bytes / nanoseconds : 0, what.c_str());
}

void ProfileTable::print() const {
  static const char *const columns = "   ms/step    share  runs/step    MB/step    GB/s";
  printer.line("profile: %.0f step%s of %.3f ms on rank 0", steps, steps == 1 ? "" : "s",
               static_cast<double>(total) / steps / 1e6);
  printer.line("%s  kind", columns);
  for (const Entry &kind : byKind())
    printRow(kind, kind.kind[0] ? kind.kind : "unknown");
  printer.line("%s  kernel", columns);
  for (const Entry &entry : entries)
    printRow(entry, printable(entry.name) + " " + printable(entry.kind) +
                        (entry.label[0] ? ", first: " + printable(entry.label) : std::string()));
}

void fsdprt::printProfile(const fsdprt_session *session, uint64_t steps, Printer &printer) {
  std::vector<Entry> entries;
  auto keep = [](void *to, const Entry *entry) -> int32_t {
    static_cast<std::vector<Entry> *>(to)->push_back(*entry);
    return 0;
  };
  uint64_t total = 0;
  call(fsdprt_session_visit_profile, session, static_cast<int32_t (*)(void *, const Entry *)>(keep),
       static_cast<void *>(&entries), &total);
  ProfileTable(std::move(entries), total, steps, printer).print();
}
