//===- Simulate.cpp - A simulated step on a described cluster ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     simulated: a step of 812.345 ms on 8 ranks of 8xH100.json
//     compute 800.000 ms, exposed communication 12.345 ms (1.5 %)
//     tokens: 161,234 per second, 20,154 per rank
//     peak memory: 23.4 GiB per rank (arena)
//     link NVLink: busy for 19.1 % of the step
//     kernels: 410 launches, timed by their clocks at 1.469 GHz: tensor 700.000 ms, launch 9 ms
//              ms   runs launches   us each   bound  tensor  memory  kernel
//         400.000     32       32 12500.000  tensor  93.1 %   4.1 %  contract k_3f2a (h.0 mlp)
//      exposed ms  in flight ms   alone ms   runs         bytes  collective
//           8.112        12.100     12.100      2     1,048,576  all_gather root by Simple
//
// The column "in flight" is the sum of the times from the beginning to the end of the collectives.
// These times include delays by other collectives that use the same links. The column "alone" is
// the sum of the times that the collectives would take without such delays. The bound of a kernel
// is the largest part of the time of its longest launch. The columns "tensor" and "memory" are the
// parts of its time in which tensor cores and memory would do its work.
//
//===----------------------------------------------------------------------===//

#include "Simulate.h"
#include "TraceFile.h"
#include "core/NumberText.h"
#include "train/OutputPaths.h"
#include <algorithm>
#include <vector>

using namespace fsdprt;

namespace {
/// Data that the callbacks of a simulation collect. The data is printed after the summary.
struct Found {
  std::vector<std::string> collectives, kernels;
  std::string bounds; // seconds by bound, such as ": tensor 1.000 ms"
  uint64_t launches = 0;
  std::vector<std::pair<std::string, double>> busy;
  std::vector<fsdprt_trace_event> events;
};
} // namespace

static void addCollective(void *to, const fsdprt_simulated_collective *row) {
  char bytes[32];
  std::string name = std::string(row->kind) + (*row->unit ? " " + printable(row->unit) : "") +
                     (*row->protocol ? " by " + std::string(row->protocol) : "");
  static_cast<Found *>(to)->collectives.push_back(
      format("%11.3f %13.3f %10.3f %6llu %17s  %s", 1e3 * row->exposed_seconds,
             1e3 * row->in_flight_seconds, 1e3 * row->alone_seconds, (unsigned long long)row->runs,
             grouped(row->bytes, bytes), name.c_str()));
}

static void addKernel(void *to, const fsdprt_simulated_kernel *row) {
  Found &found = *static_cast<Found *>(to);
  double seconds = std::max(row->seconds, 1e-12);
  found.launches += row->launches;
  std::string label = *row->label ? " (" + printable(row->label) + ")" : "";
  found.kernels.push_back(
      format("%11.3f %6llu %8llu %9.1f %8s %5.1f %% %5.1f %%  %s %s%s", 1e3 * row->seconds,
             (unsigned long long)row->runs, (unsigned long long)row->launches,
             1e6 * row->seconds / static_cast<double>(row->runs), row->bound,
             100 * row->tensor_seconds / seconds, 100 * row->memory_seconds / seconds,
             printable(row->kind).c_str(), printable(row->name).c_str(), label.c_str()));
}

/// Prints the sum of all kernels by what bounds them, and a line for each kernel.
static void printKernels(const Found &found, double clocksPerSecond, Printer &printer) {
  if (found.kernels.empty())
    return;
  char number[32];
  std::string model = clocksPerSecond > 0
                          ? format("by their clocks at %.3f GHz", clocksPerSecond / 1e9)
                          : "by the rates of the cluster";
  printer.line("kernels: %s launches, timed %s%s", grouped(found.launches, number), model.c_str(),
               found.bounds.c_str());
  printer.line("         ms   runs launches   us each    bound  tensor  memory  kernel");
  for (const std::string &row : found.kernels)
    printer.line("%s", row.c_str());
}

void fsdprt::simulate(const Options &options, const fsdprt_artifact *artifact, Printer &printer) {
  std::vector<OutputLock> claims = checkOutputs(options, options.simulate);
  Found found;
  fsdprt_simulation_visitor visitor = {};
  visitor.struct_size = sizeof visitor;
  visitor.user = &found;
  visitor.collective = addCollective;
  visitor.link = [](void *to, const fsdprt_simulated_link *link) {
    static_cast<Found *>(to)->busy.emplace_back(link->name, link->busy_seconds);
  };
  visitor.kernel = addKernel;
  visitor.bound = [](void *to, const char *name, double seconds) {
    std::string &bounds = static_cast<Found *>(to)->bounds;
    bounds += format("%s %s %.3f ms", bounds.empty() ? ":" : ",", name, 1e3 * seconds);
  };
  if (!options.trace.empty())
    visitor.event = [](void *to, const fsdprt_trace_event *event) {
      static_cast<Found *>(to)->events.push_back(*event);
    };
  fsdprt_simulation result = {};
  result.struct_size = sizeof result;
  call(fsdprt_artifact_simulate, artifact, options.simulate.c_str(), &result,
       static_cast<const fsdprt_simulation_visitor *>(&visitor));
  double step = std::max(result.step_seconds, 1e-12);
  auto perSecond = [&](uint64_t tokens) {
    return static_cast<uint64_t>(static_cast<double>(tokens) / step);
  };
  char all[32], one[32], memory[32];
  printer.line("simulated: a step of %.3f ms on %s rank%s of %s", 1e3 * result.step_seconds,
               grouped(result.ranks, all), result.ranks == 1 ? "" : "s", options.simulate.c_str());
  printer.line("compute %.3f ms, exposed communication %.3f ms (%.1f %%)",
               1e3 * result.compute_seconds, 1e3 * result.exposed_seconds,
               100 * result.exposed_seconds / step);
  if (result.slowed_seconds > 0)
    printer.line("compute includes %.3f ms, because collectives occupy multiprocessors",
                 1e3 * result.slowed_seconds);
  if (result.other_seconds > 0)
    printer.line("all-gathers by %s; by %s, a step takes %.3f ms%s",
                 result.copies ? "copy engines" : "kernels",
                 result.copies ? "kernels" : "copy engines", 1e3 * result.other_seconds,
                 result.copies ? " (run with --nccl-cta-policy=zero)" : "");
  printer.line("tokens: %s per second, %s per rank", grouped(perSecond(result.tokens), all),
               grouped(perSecond(result.tokens / result.ranks), one));
  printer.line("peak memory: %s per rank (arena)", shortBytes(result.arena_bytes, memory));
  for (const auto &[name, seconds] : found.busy)
    printer.line("link %s: busy for %.1f %% of the step", printable(name).c_str(),
                 100 * seconds / step);
  if (!found.collectives.empty())
    printer.line(" exposed ms  in flight ms   alone ms   runs             bytes  collective");
  for (const std::string &row : found.collectives)
    printer.line("%s", row.c_str());
  printKernels(found, result.clocks_per_second, printer);
  if (!options.trace.empty())
    writeTrace(options.trace, std::move(found.events), printer);
}
