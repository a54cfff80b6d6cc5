//===- ProfileTable.cpp - Table of a run's profile --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     profile: 19 steps of 812.345 ms on rank 0
//     peak rates of a rank, with all ranks active: 10.4 GB/s, 61.2 GMAC/s, 119.8 GMAC/s of bf16
//        ms/step   share  runs/step    MB/step    GB/s  GMAC/s   floor  kind
//        601.123  74.0 %         97     2310.1     3.8    41.0  67.0 %  contract
//     ...
//        ms/step   share  runs/step    MB/step    GB/s  GMAC/s   floor  kernel
//        120.456  14.8 %         12      310.2     2.6    44.1  72.1 %  k_3f2a contract, first: ..
//
// The column "floor" contains the least time in which a rank could move the bytes and compute the
// multiply-adds at its peak rates, as a percentage of the measured time. The percentage may exceed
// 100 if bytes are read from a cache, which is faster than the memory whose peak rate is measured.
// The tables of GPUs lack this column, because their peak rates are unknown. In the first table,
// one line contains the time between commands. MB and GB mean 10^6 bytes and 10^9 bytes, and GMAC
// means 10^9 multiply-adds.
//
//===----------------------------------------------------------------------===//

#include "ProfileTable.h"
#include "io/OutputFile.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace fsdprt;
using ull = unsigned long long;
using Entry = fsdprt_profile_entry;

namespace {
class ProfileTable {
public:
  ProfileTable(const std::vector<Entry> &entries, uint64_t total, uint64_t steps,
               const PeakRates &peak, RunReporter &printer)
      : total(total), steps(static_cast<double>(steps)), peak(peak), printer(printer) {
    for (const Entry &entry : entries)
      rows.push_back({entry, hasPeaks() ? peak.floor(entry.bytes, entry.multiply_adds,
                                                     entry.bf16_multiply_adds)
                                        : 0});
  }
  void print() const;

private:
  struct Row {
    Entry entry;
    double floor; ///< result of PeakRates::floor()
  };
  bool hasPeaks() const { return peak.bytes > 0; }
  std::vector<Row> byKind() const;
  void printRow(const Row &row, const std::string &what) const;

  std::vector<Row> rows;
  uint64_t total;
  double steps;
  PeakRates peak;
  RunReporter &printer;
};
} // namespace

/// Returns one row for each kind of profile entry, and one row for the time between commands. The
/// rows are sorted by descending time.
std::vector<ProfileTable::Row> ProfileTable::byKind() const {
  std::vector<Row> kinds;
  uint64_t left = total;
  for (const Row &row : rows) {
    const Entry &entry = row.entry;
    auto same = [&](const Row &kind) { return std::string(kind.entry.kind) == entry.kind; };
    auto kind = std::find_if(kinds.begin(), kinds.end(), same);
    left -= std::min(left, entry.nanoseconds);
    if (kind == kinds.end()) {
      kinds.push_back(row);
      continue;
    }
    kind->entry.nanoseconds += entry.nanoseconds;
    kind->entry.runs += entry.runs;
    kind->entry.bytes += entry.bytes;
    kind->entry.multiply_adds += entry.multiply_adds;
    kind->entry.bf16_multiply_adds += entry.bf16_multiply_adds;
    kind->floor += row.floor;
  }
  Entry between = {};
  between.kind = "between commands";
  between.nanoseconds = left;
  kinds.push_back({between, 0});
  std::sort(kinds.begin(), kinds.end(),
            [](const Row &a, const Row &b) { return a.entry.nanoseconds > b.entry.nanoseconds; });
  return kinds;
}

void ProfileTable::printRow(const Row &row, const std::string &what) const {
  const Entry &entry = row.entry;
  double nanoseconds = static_cast<double>(entry.nanoseconds),
         bytes = static_cast<double>(entry.bytes);
  double products = static_cast<double>(entry.multiply_adds + entry.bf16_multiply_adds);
  double each = entry.nanoseconds ? 1 / nanoseconds : 0;
  char floor[16] = "      - ";
  if (hasPeaks())
    std::snprintf(floor, sizeof floor, "%6.1f %%", 100 * row.floor * each);
  printer.line("%10.3f %6.1f %% %10.0f %10.1f %7.1f %7.1f %s  %s", nanoseconds / steps / 1e6,
               total ? 100 * nanoseconds / static_cast<double>(total) : 0,
               static_cast<double>(entry.runs) / steps, bytes / steps / 1e6, bytes * each,
               products * each, floor, what.c_str());
}

void ProfileTable::print() const {
  static const char *const columns =
      "   ms/step    share  runs/step    MB/step    GB/s  GMAC/s    floor";
  printer.line("profile: %.0f step%s of %.3f ms on rank 0", steps, steps == 1 ? "" : "s",
               static_cast<double>(total) / steps / 1e6);
  if (hasPeaks())
    printer.line(
        "peak rates of a rank, with all ranks active: %.1f GB/s, %.1f GMAC/s, %.1f GMAC/s of bf16",
        peak.bytes, peak.multiplyAdds, peak.bf16MultiplyAdds);
  printer.line("%s  kind", columns);
  for (const Row &kind : byKind())
    printRow(kind, kind.entry.kind[0] ? kind.entry.kind : "unknown");
  printer.line("%s  kernel", columns);
  for (const Row &row : rows)
    printRow(row,
             printable(row.entry.name) + " " + printable(row.entry.kind) +
                 (row.entry.label[0] ? ", first: " + printable(row.entry.label) : std::string()));
}

static void writeProfile(const std::string &path, const std::vector<Entry> &entries, uint64_t total,
                         uint64_t steps, const PeakRates &peak) {
  nlohmann::ordered_json found = {{"steps", steps}, {"nanoseconds", total}};
  if (peak.bytes > 0)
    found["peak_rates"] = {{"bytes_per_second", peak.bytes * 1e9},
                           {"multiply_adds_per_second", peak.multiplyAdds * 1e9},
                           {"bf16_multiply_adds_per_second", peak.bf16MultiplyAdds * 1e9}};
  found["commands"] = nlohmann::ordered_json::array();
  for (const Entry &entry : entries)
    found["commands"].push_back({{"name", entry.name},
                                 {"kind", entry.kind},
                                 {"first", entry.label},
                                 {"runs", entry.runs},
                                 {"nanoseconds", entry.nanoseconds},
                                 {"bytes", entry.bytes},
                                 {"multiply_adds", entry.multiply_adds},
                                 {"bf16_multiply_adds", entry.bf16_multiply_adds}});
  std::string text = found.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  OutputFile file(path, true);
  file.write(text.data(), text.size());
  file.commit();
}

void ProfileReport::beforeTraining(const TrainingRun &run) {
  fsdprt_session_info placed = run.measure();
  if (run.options.device == "cpu")
    peak = measurePeakRates(placed.local_ranks * placed.threads_per_rank, placed.local_ranks);
}

void ProfileReport::afterTraining(const TrainingRun &run) {
  if (!run.isRoot || run.differs || run.stepsDone <= run.stepsBefore + 1)
    return;
  uint64_t steps = run.stepsDone - run.stepsBefore - 1, total = 0;
  std::vector<Entry> entries;
  auto keep = [](void *to, const Entry *entry) -> int32_t {
    static_cast<std::vector<Entry> *>(to)->push_back(*entry);
    return 0;
  };
  call(fsdprt_session_visit_profile, static_cast<const fsdprt_session *>(run.session.get()),
       static_cast<int32_t (*)(void *, const Entry *)>(keep), static_cast<void *>(&entries),
       &total);
  ProfileTable(entries, total, steps, peak, run.reporter).print();
  if (!run.options.profileFile.empty())
    writeProfile(run.options.profileFile, entries, total, steps, peak);
}
