//===- RunReports.cpp - Lines of a run at its start and end -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/RunReports.h"
#include "core/MemoryLimits.h"
#include "core/NumberText.h"
#include <algorithm>
#include <iterator>

using namespace fsdprt;
using ull = unsigned long long;

static uint64_t gpuBytesBeside(const TrainingRun &run) {
  uint64_t bytes = 0;
  call(fsdprt_session_get_gpu_memory, static_cast<const fsdprt_session *>(run.session.get()),
       &bytes);
  return bytes;
}

/// Reports how many parameters are trained, frozen and constant.
static void announceParameters(const TrainingRun &run) {
  uint64_t trained = 0, frozen = 0, elements = 0;
  fsdprt_param_info param = {};
  for (uint64_t i = 0; param.struct_size = sizeof param,
                fsdprt_artifact_get_param(run.artifact, i, &param) == FSDPRT_OK;
       ++i) {
    ++(param.trainable ? trained : frozen);
    elements += param.trainable ? param.elements : 0;
  }
  char a[32], b[32], c[32], d[32];
  run.reporter.line("parameters: %s trained (%s elements), %s frozen, %s constant",
                    grouped(trained, a), grouped(elements, b), grouped(frozen, c),
                    grouped(run.info.constants, d));
}

void fsdprt::announceSession(const TrainingRun &run, const std::string &random) {
  fsdprt_session_info placed = run.measure();
  char a[32], b[32], c[32];
  run.reporter.line("%s: %u %s%s x %u thread%s on %s, %s parameters, %s%s",
                    run.options.artifact.c_str(), run.ranks, run.processes > 1 ? "process" : "rank",
                    run.ranks == 1      ? ""
                    : run.processes > 1 ? "es"
                                        : "s",
                    placed.threads_per_rank, placed.threads_per_rank == 1 ? "" : "s",
                    run.options.device.c_str(), grouped(run.info.parameter_elements, a),
                    run.info.optimizer, random.c_str());
  if (run.options.place)
    run.reporter.line("%s, over %s", run.options.place->text().c_str(),
                      run.options.control.c_str());
  announceParameters(run);
  if (run.options.mpiReduce == "library" && run.options.backend != "mpi" && run.ranks > 1 &&
      run.firstRank == 0)
    run.reporter.warning("--mpi-reduce=library has no effect: --backend=%s computes the sums, not "
                         "MPI",
                         run.options.backend.c_str());
  if (run.options.backend == "nccl")
    run.reporter.line("ranks communicate over %s", placed.meeting);
  uint64_t arenas = placed.arena_bytes * run.ranks + placed.reference_arena_bytes,
           resident = peakResidentBytes();
  uint64_t here = placed.arena_bytes * placed.local_ranks + placed.reference_arena_bytes;
  run.reporter.line(
      "memory planned: %s per rank (%llu bytes), %s in all arenas; other memory of the process: %s",
      shortBytes(run.info.arena_bytes, a), (ull)run.info.arena_bytes, shortBytes(arenas, b),
      shortBytes(resident > here ? resident - here : 0, c));
  if (run.info.host_bytes)
    run.reporter.line("memory planned on the host: %s per rank (%llu bytes)",
                      shortBytes(run.info.host_bytes, a), (ull)run.info.host_bytes);
  if (uint64_t beside = gpuBytesBeside(run))
    run.reporter.line("GPU memory besides the arenas, such as contexts and code: %s (%llu bytes)",
                      shortBytes(beside, a), (ull)beside);
  if (run.info.file_bytes)
    run.reporter.line(
        "offloaded state: a file of %s per rank (%llu bytes, planned %llu), %s",
        shortBytes(placed.file_bytes, a), (ull)placed.file_bytes, (ull)run.info.file_bytes,
        placed.file_is_direct ? "bypassing the page cache" : "through the page cache");
}

void fsdprt::announceWeights(const TrainingRun &run, const WeightSources &sources) {
  uint64_t drawn = run.info.params - sources.fromFile - sources.fromModel;
  char text[32];
  std::string list;
  auto add = [&](uint64_t count, const std::string &from) {
    if (count)
      list += (list.empty() ? "" : ", ") + std::string(grouped(count, text)) +
              (list.empty() ? count == 1 ? " parameter from " : " parameters from " : " from ") +
              from;
  };
  add(sources.fromFile, run.options.init);
  add(sources.fromModel, "the model's own values");
  add(drawn,
      "their distributions with seed " + std::to_string(run.options.seed.value_or(run.info.seed)));
  if (drawn != run.info.params)
    run.reporter.line("weights: %s", list.c_str());
}

void MemoryGrowth::begin(const TrainingRun &run) {
  onHost = privateBytes();
  onGpus = gpuBytesBeside(run);
}

void MemoryGrowth::report(const TrainingRun &run) const {
  if (onHost && run.options.device != "emulate" && run.stepsDone - run.stepsBefore > 1)
    run.reporter.line("memory besides the arenas: grew by %lld bytes after the first step",
                      static_cast<long long>(privateBytes() - onHost));
  if (onGpus)
    run.reporter.line("GPU memory besides the arenas: grew by %lld bytes after the first step",
                      static_cast<long long>(gpuBytesBeside(run) - onGpus));
}

void SaveStalls::add(double seconds, bool async) {
  isAsync = async;
  saves += async;
  last = 0;
  extend(seconds);
}

void SaveStalls::extend(double seconds) {
  untaken = untaken.value_or(0) + seconds;
  if (!isAsync)
    return;
  sum += seconds;
  last += seconds;
  most = std::max(most, last);
}

void SaveStalls::report(const TrainingRun &run, double stepSeconds) const {
  uint64_t steps = run.stepsDone - run.stepsBefore;
  if (saves == 0 || steps == 0)
    return;
  double mean = sum / static_cast<double>(saves), step = stepSeconds / static_cast<double>(steps);
  run.reporter.line("%llu save%s while training continued: delayed the steps by %.1f ms each on "
                    "average (%.2f of a step), by %.1f ms at most",
                    (ull)saves, saves == 1 ? "" : "s", mean * 1e3, mean / step, most * 1e3);
}

void fsdprt::writeMetrics(Metrics &metrics, const TrainingRun &run, uint64_t number,
                          const float *block, const StepCost &cost, const double *validation) {
  fsdprt_session_info placed = run.measure();
  metrics.begin(number);
  if (run.options.onlyKinds.empty()) {
    metrics.add("train/loss", block[FSDPRT_BLOCK_LOSS]);
    metrics.add("train/grad_norm", block[FSDPRT_BLOCK_GRAD_NORM]);
    metrics.add("train/lr", block[FSDPRT_BLOCK_LR]);
    if (block[FSDPRT_BLOCK_LOSS_SCALE] > 0)
      metrics.add("train/loss_scale", block[FSDPRT_BLOCK_LOSS_SCALE]);
    metrics.add("train/skipped_steps", static_cast<uint64_t>(block[FSDPRT_BLOCK_SKIPPED]));
  }
  metrics.add("speed/tokens_per_second",
              static_cast<float>(static_cast<double>(cost.tokens) / cost.seconds));
  metrics.add("memory/peak_bytes", placed.peak_bytes);
  metrics.add("memory/planned_bytes", run.info.arena_bytes);
  metrics.add("memory/resident_bytes", peakResidentBytes());
  static constexpr const char *kinds[] = {
      "communication/all_gather_bytes", "communication/reduce_scatter_bytes",
      "communication/all_reduce_bytes", "communication/broadcast_bytes",
      "communication/shift_bytes"};
  for (size_t kind = 0; kind < std::size(kinds); ++kind)
    metrics.add(kinds[kind], cost.exchanged[kind]);
  metrics.add("speed/step_ms", static_cast<float>(cost.seconds * 1e3));
  metrics.add("speed/cpu_ms", static_cast<float>(cost.cpuSeconds * 1e3));
  if (cost.saveStall)
    metrics.add("speed/save_stall_ms", static_cast<float>(*cost.saveStall * 1e3));
  if (validation)
    metrics.add("validation/validation_loss", *validation);
  metrics.end();
}

void fsdprt::summarise(const TrainingRun &run, const StepCost &cost, double firstLoss,
                       double lastLoss) {
  fsdprt_session_info placed = run.measure();
  char a[32], b[32], c[32];
  uint64_t here = run.stepsDone - run.stepsBefore;
  grouped(static_cast<uint64_t>(static_cast<double>(cost.tokens) / cost.seconds + 0.5), a);
  if (!run.options.onlyKinds.empty()) {
    run.reporter.line("%llu step%s in %.2f s, %s tokens/s, only with kernels of kind %s", (ull)here,
                      here == 1 ? "" : "s", cost.seconds, a, run.options.onlyKinds.c_str());
    return;
  }
  run.reporter.line("%llu step%s in %.2f s, %s tokens/s; loss %.4f -> %.4f", (ull)here,
                    here == 1 ? "" : "s", cost.seconds, a, printableNumber(firstLoss),
                    printableNumber(lastLoss));
  run.reporter.line(
      "memory measured: %s per rank (%llu bytes, planned %llu), %s resident in %s process",
      shortBytes(placed.peak_bytes, b), (ull)placed.peak_bytes, (ull)run.info.arena_bytes,
      shortBytes(peakResidentBytes(), c), run.processes == 1 ? "the whole" : "rank 0's");
}
