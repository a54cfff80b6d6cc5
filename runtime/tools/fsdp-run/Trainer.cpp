//===- Trainer.cpp - A run from its first step to its last ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step: inputs of every rank, the learning rate into every step block, the program
// 'step', the block of rank 0 back. Losses are means over all ranks already.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"
#include "AllocationHook.h"
#include "Interrupt.h"
#include "OutputPaths.h"
#include "ProfileTable.h"
#include "TraceFile.h"
#include "Weights.h"
#include "core/FutexEvent.h"
#include "core/MemoryLimits.h"
#include "core/Stack.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>

using namespace fsdprt;
using ull = unsigned long long;

Trainer::Trainer(const Options &given, fsdprt_artifact *artifact, Printer &printer)
    : options(given), artifact(artifact), printer(printer), isRoot(given.isRoot()) {
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact, &info);
  if (!options.offloadDirectory.empty() && info.file_bytes == 0)
    badInput("--offload-dir: %s keeps nothing in a file; compile with --offload=optimizer:file",
             options.artifact.c_str());
  for (const char *program : {"init", "step"})
    if (!fsdprt_artifact_has_program(artifact, program))
      badInput("%s: has no program '%s'; it cannot be trained", options.artifact.c_str(), program);
  if (options.check)
    for (const char *program : {"reference_init", "reference"})
      if (!fsdprt_artifact_has_program(artifact, program))
        badInput("%s: has no program '%s' to check against", options.artifact.c_str(), program);
  ranks = static_cast<uint32_t>(info.ranks);
  if (!options.resume.empty())
    takeFromSave();
  rate.lr = options.lr.value_or(info.lr);
  rate.minimum = options.minimumLr.value_or(0);
  if (rate.minimum > rate.lr)
    badInput("--min-lr: expected at most the learning rate, %g, found %g", rate.lr, rate.minimum);
  rate.warmupSteps = options.warmupSteps;
  rate.decaySteps = options.decaySteps ? options.decaySteps : options.minimumLr ? options.steps : 0;
  openInputs();
  if (!options.save.empty() || resumed.isOpen())
    describeRun();
  if (resumed.isOpen())
    checkDataOfSave();
  if (isRoot)
    claims = checkOutputs(options);
  if (!options.init.empty() && !resumed.isOpen())
    initial.open(options.init);
  if (!options.save.empty())
    saver.open(options.save, resumed.getFolder(), !resumed.fallback().empty(), options.keep,
               artifact, options.launchedRank);
  createSession();
}

void Trainer::createSession() {
  fsdprt_session_options wanted = {};
  wanted.struct_size = sizeof wanted;
  wanted.ranks = options.ranks;
  wanted.threads_per_rank = options.threadsPerRank;
  wanted.with_reference = options.check && isRoot;
  wanted.rank = options.launchedRank.value_or(0);
  wanted.channel = options.launchedChannel;
  wanted.steps_before = stepsBefore;
  InjectedFaults faults;
  if (!options.rankFault.empty() && options.launchedResume.empty()) {
    rankFault = RankFault::parse(options.rankFault);
    faults.rankFault = options.rankFault;
    if (rankFault.isAt(RankFault::Phase::start, wanted.rank, 0))
      rankFault.inject();
  }
  wanted.device = options.device.c_str();
  wanted.cuda_graph = options.cudaGraph;
  wanted.gemm = options.gemm.empty() ? nullptr : options.gemm.c_str();
  wanted.backend = options.backend.c_str();
  if (options.backend == "nccl") {
    wanted.control = options.control.c_str();
    wanted.local_rank =
        options.place && options.place->localRank ? *options.place->localRank + 1 : 0;
  }
  wanted.timeout_seconds = options.timeoutSeconds;
  wanted.offload_directory =
      options.offloadDirectory.empty() ? nullptr : options.offloadDirectory.c_str();
  wanted.seed = options.seed.value_or(info.seed);
  wanted.profile = options.profile;
  wanted.link_bytes_per_second = options.linkBandwidth;
  wanted.trace_runs = options.trace.empty() ? 0 : options.traceSteps;
  faults.onlyKinds = options.onlyKinds;
  faults.dropGradientOfRank = options.fault == Fault::dropGradient ? ranks : 0;
  injectFaults(faults);
  uint64_t samples = tokens ? tokens->size() : batches->trainRows() + batches->validationRows();
  std::string agreement = agreementOf(options, rate.lr, samples, stepsBefore,
                                      options.launchedRank ? contents() : std::vector<Content>());
  wanted.agreement = agreement.c_str();
  wanted.meeting_seconds = options.rendezvousSeconds;
  wanted.own_sums = options.mpiReduce == "library";
  wanted.ranks_on_machine = options.place ? options.place->localRanks.value_or(0) : 0;
  fsdprt_session *created = nullptr;
  call(fsdprt_session_create, static_cast<const fsdprt_artifact *>(artifact), &wanted, &created);
  session.reset(created);
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(created, &placed);
  firstRank = placed.first_rank;
  lastRank = firstRank + placed.local_ranks;
  processes = placed.processes;
  words.resize(processes);
  savedBlocks.resize(size_t(ranks) * FSDPRT_BLOCK_SIZE);
  blocksBefore.resize(savedBlocks.size());
  for (size_t i = 0; options.check && i < inputs.size(); ++i) {
    fsdprt_input_info whole = {};
    whole.struct_size = sizeof whole;
    if (fsdprt_artifact_get_input(artifact, "reference", i, &whole) != FSDPRT_OK ||
        std::strcmp(whole.name, inputs[i].name) != 0 ||
        whole.micro_batches != uint64_t(inputs[i].micro_batches) * ranks ||
        whole.bytes != inputs[i].bytes * ranks)
      badInput(
          "%s: input '%s': the reference does not take one micro-batch for each of every rank's",
          options.artifact.c_str(), inputs[i].name);
  }
}

/// CPU time of all threads of the process.
static double cpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t Trainer::gpuBytesBeside() const {
  uint64_t bytes = 0;
  call(fsdprt_session_get_gpu_memory, static_cast<const fsdprt_session *>(session.get()), &bytes);
  return bytes;
}

void Trainer::announce() {
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session.get(), &placed);
  char a[32], b[32], c[32];
  printer.line("%s: %u %s%s x %u thread%s on %s, %s parameters, %s%s", options.artifact.c_str(),
               ranks, processes > 1 ? "process" : "rank",
               ranks == 1      ? ""
               : processes > 1 ? "es"
                               : "s",
               placed.threads_per_rank, placed.threads_per_rank == 1 ? "" : "s",
               options.device.c_str(), grouped(info.parameter_elements, a), info.optimizer,
               describeRandom(", on random data").c_str());
  if (options.place)
    printer.line("%s, over %s", options.place->text().c_str(), options.control.c_str());
  announceParameters();
  if (options.mpiReduce == "library" && options.backend != "mpi" && ranks > 1 && firstRank == 0)
    std::fprintf(stderr,
                 "fsdp-run: warning: --mpi-reduce=library has no effect: sums are those of "
                 "--backend=%s, and not MPI's\n",
                 options.backend.c_str());
  if (options.backend == "nccl")
    printer.line("ranks meet over %s", placed.meeting);
  uint64_t arenas = placed.arena_bytes * ranks + placed.reference_arena_bytes,
           resident = peakResidentBytes();
  uint64_t here = placed.arena_bytes * placed.local_ranks + placed.reference_arena_bytes;
  printer.line(
      "memory planned: %s per rank (%llu bytes), %s with all arenas; the process beside them: %s",
      shortBytes(info.arena_bytes, a), (ull)info.arena_bytes, shortBytes(arenas, b),
      shortBytes(resident > here ? resident - here : 0, c));
  if (info.host_bytes)
    printer.line("of them on the host: %s per rank (%llu bytes)", shortBytes(info.host_bytes, a),
                 (ull)info.host_bytes);
  if (uint64_t beside = gpuBytesBeside())
    printer.line("memory of GPUs beside the arenas, with contexts and code: %s (%llu bytes)",
                 shortBytes(beside, a), (ull)beside);
  if (info.file_bytes)
    printer.line("state in a file of each rank: %s (%llu bytes, planned %llu), %s",
                 shortBytes(placed.file_bytes, a), (ull)placed.file_bytes, (ull)info.file_bytes,
                 placed.file_is_direct ? "past the system's cache" : "through the system's cache");
  announceInputs();
  announceSamples();
}

void Trainer::initialise() {
  call(fsdprt_session_run, session.get(), "init");
  if (options.check && isRoot)
    call(fsdprt_session_run, session.get(), "reference_init");
  if (resumed.isOpen())
    return loadSave();
  WeightSources sources = options.init.empty() ? modelWeights(artifact)
                                               : importWeights(initial, artifact, session.get());
  announceWeights(sources);
}

/// Says which parameters start from where, unless all are drawn.
void Trainer::announceWeights(const WeightSources &sources) {
  uint64_t drawn = info.params - sources.fromFile - sources.fromModel;
  char text[32];
  std::string list;
  auto add = [&](uint64_t count, const std::string &from) {
    if (count)
      list += (list.empty() ? "" : ", ") + std::string(grouped(count, text)) +
              (list.empty() ? count == 1 ? " parameter from " : " parameters from " : " from ") +
              from;
  };
  add(sources.fromFile, options.init);
  add(sources.fromModel, "the model's own values");
  add(drawn, "their distributions with seed " + std::to_string(options.seed.value_or(info.seed)));
  if (drawn != info.params)
    printer.line("weights: %s", list.c_str());
}

void Trainer::copyInputs(uint64_t number, bool validating) {
  bool whole =
      options.check && isRoot && !validating; // the reference sees the batches of all ranks
  for (uint32_t rank = whole ? 0 : firstRank; rank < (whole ? ranks : lastRank); ++rank)
    for (size_t i = 0; i < inputs.size(); ++i)
      for (uint32_t k = 0; k < inputs[i].micro_batches; ++k) {
        const void *data = validating ? batches->validation(number, rank, k, i)
                                      : batches->train(number, rank, k, i);
        if (rank >= firstRank && rank < lastRank)
          call(fsdprt_session_write_input, session.get(), rank, uint64_t(i), k, data,
               batches->bytes(i));
        if (whole)
          call(fsdprt_session_write_input, session.get(), FSDPRT_REFERENCE, uint64_t(i),
               rank * inputs[i].micro_batches + k, data, batches->bytes(i));
      }
}

void Trainer::setRate(uint32_t rank, float lr) {
  float block[FSDPRT_BLOCK_SIZE];
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session.get()), rank,
       static_cast<float *>(block));
  block[FSDPRT_BLOCK_LR] = lr;
  call(fsdprt_session_write_block, session.get(), rank, static_cast<const float *>(block));
}

/// A planted fault.
static void allocateSomething() {
  void *memory = std::malloc(24);
  asm volatile("" : : "r"(memory) : "memory"); // it is used, for all the compiler knows
  std::free(memory);
}

/// Returns false when the run has to end before this step, because its inputs are not those of the
/// start any more.
bool Trainer::step(uint64_t number) {
  if (!writeInputs(number - 1, false))
    return false;
  float lr = static_cast<float>(rate.at(number));
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    setRate(rank, lr);
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session.get()), rank,
         &blocksBefore[size_t(rank) * FSDPRT_BLOCK_SIZE]);
  bool skips =
      options.fault == Fault::skipShardElement && faultRank >= firstRank && faultRank < lastRank;
  if (skips)
    saveShardElement();
  call(fsdprt_session_run, session.get(), "step");
  if (skips)
    restoreShardElement();
  if (options.fault == Fault::allocate)
    allocateSomething();
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session.get()), firstRank,
       static_cast<float *>(lastBlock));
  return true;
}

/// The mean loss over the validation batches. The step blocks are as before it.
double Trainer::validate() {
  const fsdprt_session *reading = session.get();
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    call(fsdprt_session_read_block, reading, rank, &savedBlocks[size_t(rank) * FSDPRT_BLOCK_SIZE]);
  double sum = 0;
  for (uint64_t batch = 0; batch < validationBatches && !isToEnd(); ++batch) {
    float block[FSDPRT_BLOCK_SIZE];
    if (!writeInputs(batch, true))
      break;
    call(fsdprt_session_run, session.get(), "eval");
    call(fsdprt_session_read_block, reading, firstRank, static_cast<float *>(block));
    agree();
    sum += block[FSDPRT_BLOCK_LOSS];
  }
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    call(fsdprt_session_write_block, session.get(), rank,
         static_cast<const float *>(&savedBlocks[size_t(rank) * FSDPRT_BLOCK_SIZE]));
  return sum / static_cast<double>(validationBatches);
}

void Trainer::writeMetrics(uint64_t number, const float *block, double seconds, double cpu,
                           const double *validation) {
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session.get(), &placed);
  metrics.begin(number);
  if (options.onlyKinds.empty()) {
    metrics.add("train/loss", block[FSDPRT_BLOCK_LOSS]);
    metrics.add("train/grad_norm", block[FSDPRT_BLOCK_GRAD_NORM]);
    metrics.add("train/lr", block[FSDPRT_BLOCK_LR]);
    if (block[FSDPRT_BLOCK_LOSS_SCALE] > 0)
      metrics.add("train/loss_scale", block[FSDPRT_BLOCK_LOSS_SCALE]);
    metrics.add("train/skipped_steps", static_cast<uint64_t>(block[FSDPRT_BLOCK_SKIPPED]));
  }
  metrics.add("speed/tokens_per_second",
              static_cast<float>(static_cast<double>(tokensPerStep) / seconds));
  metrics.add("memory/peak_bytes", placed.peak_bytes);
  metrics.add("memory/planned_bytes", info.arena_bytes);
  metrics.add("memory/resident_bytes", peakResidentBytes());
  static constexpr const char *kinds[] = {
      "communication/all_gather_bytes", "communication/reduce_scatter_bytes",
      "communication/all_reduce_bytes", "communication/broadcast_bytes"};
  for (size_t kind = 0; kind < 4; ++kind)
    metrics.add(kinds[kind], exchanged[kind]);
  metrics.add("speed/step_ms", static_cast<float>(seconds * 1e3));
  metrics.add("speed/cpu_ms", static_cast<float>(cpu * 1e3));
  if (validation)
    metrics.add("validation/validation_loss", *validation);
  metrics.end();
}

/// Tells the other processes whether this one is to end, and hears whether they are; so that all
/// end behind the same step. All processes call it at the same places.
void Trainer::agree(double cpu) {
  Word mine = {interruptSignal(), printer.isUnread(), differs, *spoiled != 0, cpu};
  call(fsdprt_session_exchange, session.get(), static_cast<const void *>(&mine), sizeof mine,
       static_cast<void *>(words.data()));
  agreed.cpu = 0;
  for (const Word &word : words) {
    agreed.signal = agreed.signal ? agreed.signal : word.signal;
    agreed.unread |= word.unread;
    agreed.differs |= word.differs;
    agreed.spoiled |= word.spoiled;
    agreed.cpu += word.cpu;
  }
}

bool Trainer::isToEnd() {
  if (processes == 1)
    agree(agreed.cpu);
  return agreed.signal != 0 || agreed.unread || agreed.spoiled;
}

/// Counts steps that changed nothing because loss or norm was not finite; says so, and
/// whether that were too many in a row.
bool Trainer::judgeFinite(uint64_t number, const float *block) {
  bool scales = block[FSDPRT_BLOCK_LOSS_SCALE] > 0 && block[FSDPRT_BLOCK_GROWTH] >= 0;
  if (block[FSDPRT_BLOCK_FINITE] != 0 || !options.onlyKinds.empty()) {
    nonfiniteSteps = 0;
    return true;
  }
  ++nonfiniteSteps;
  uint64_t allowed = options.nonfiniteSteps.value_or(scales ? 49 : 0);
  auto value = [&](int slot) {
    return std::isnan(block[slot]) ? NAN : static_cast<double>(block[slot]);
  };
  char scale[64] = "";
  if (scales)
    std::snprintf(scale, sizeof scale, "; loss scale now %g",
                  static_cast<double>(block[FSDPRT_BLOCK_LOSS_SCALE]));
  printer.line("step %llu: not finite: loss %g, gradient norm %g: no parameter was changed%s",
               (ull)number, value(FSDPRT_BLOCK_LOSS), value(FSDPRT_BLOCK_GRAD_NORM), scale);
  if (nonfiniteSteps <= allowed)
    return true;
  if (nonfiniteSteps > 1)
    std::snprintf(nonfinite, sizeof nonfinite, "stopped at step %llu, %llu such steps in a row",
                  (ull)number, (ull)nonfiniteSteps);
  else
    std::snprintf(nonfinite, sizeof nonfinite, "stopped at step %llu", (ull)number);
  return false;
}

void Trainer::train() {
  if (validationBatches && options.validateEvery) {
    double loss = validate();
    if (!isToEnd()) // one that ended early has no loss
      printer.line("before training: validation loss %.4f nats per token", loss);
  }
  double began = monotonicSeconds(), firstLoss = 0, lastLoss = 0;
  agree();
  countAllocations(options.assertNoAllocations);
  for (uint64_t number = stepsBefore + 1; number <= options.steps && !agreed.differs && !isToEnd();
       ++number) {
    fsdprt_session_info before = {}, behind = {};
    before.struct_size = behind.struct_size = sizeof before;
    fsdprt_session_get_info(session.get(), &before);
    double start = monotonicSeconds(), startCpu = cpuSeconds();
    if (!step(number))
      break;
    double seconds = std::max(monotonicSeconds() - start, 1e-9), cpu = cpuSeconds() - startCpu;
    trainingSeconds += seconds;
    stepsDone = number;
    fsdprt_session_get_info(session.get(), &behind);
    for (size_t kind = 0; kind < 4; ++kind)
      exchanged[kind] = behind.collective_bytes[kind] - before.collective_bytes[kind];
    float block[FSDPRT_BLOCK_SIZE];
    std::memcpy(block, lastBlock, sizeof block);
    lastLoss = block[FSDPRT_BLOCK_LOSS];
    bool first = number == stepsBefore + 1;
    firstLoss = first ? lastLoss : firstLoss;
    double done = monotonicSeconds() - began;
    printer.step({number, options.steps, lastLoss, block[FSDPRT_BLOCK_GRAD_NORM],
                  block[FSDPRT_BLOCK_LR], static_cast<double>(tokensPerStep) / seconds,
                  done / static_cast<double>(number - stepsBefore) *
                      static_cast<double>(options.steps - number),
                  !options.onlyKinds.empty()});
    if (options.profile && first)
      call(fsdprt_session_clear_profile, session.get());
    if (options.check && isRoot)
      stepReference(number, block);
    agree(cpu);
    cpu = agreed.cpu;
    bool last = number == options.steps;
    bool due = validationBatches &&
               (last || (options.validateEvery && number % options.validateEvery == 0));
    if (due)
      validationLoss = validate();
    due = due && !isToEnd(); // a validation that ended early has no loss
    if (due && !last)
      printer.line("step %llu: validation loss %.4f nats per token", (ull)number, validationLoss);
    if (metrics.isOpen())
      writeMetrics(number, block, seconds, cpu, due ? &validationLoss : nullptr);
    if (first) {
      privateAtFirst = privateBytes();
      gpuBesideAtFirst = gpuBytesBeside();
    }
    if (!judgeFinite(number, block))
      break;
    if (saver.isOpen() && options.saveEvery && number % options.saveEvery == 0) {
      countAllocations(false); // what it takes is no step's
      save();
      countAllocations(options.assertNoAllocations);
    }
  }
  countAllocations(false);
  printer.endSteps();
  if (!agreed.differs && stepsDone > stepsBefore && !*nonfinite)
    summarise(firstLoss, lastLoss, trainingSeconds);
}

void Trainer::summarise(double firstLoss, double lastLoss, double seconds) {
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session.get(), &placed);
  char a[32], b[32], c[32];
  uint64_t here = stepsDone - stepsBefore;
  grouped(static_cast<uint64_t>(static_cast<double>(tokensPerStep * here) / seconds + 0.5), a);
  if (!options.onlyKinds.empty()) {
    printer.line("%llu step%s in %.2f s, %s tokens/s, only with kernels of kind %s", (ull)here,
                 here == 1 ? "" : "s", seconds, a, options.onlyKinds.c_str());
    return;
  }
  printer.line("%llu step%s in %.2f s, %s tokens/s; loss %.4f -> %.4f", (ull)here,
               here == 1 ? "" : "s", seconds, a, firstLoss, lastLoss);
  printer.line("memory measured: %s per rank (%llu bytes, planned %llu), %s resident in %s process",
               shortBytes(placed.peak_bytes, b), (ull)placed.peak_bytes, (ull)info.arena_bytes,
               shortBytes(peakResidentBytes(), c), processes == 1 ? "the whole" : "rank 0's");
  if (privateAtFirst && options.device != "emulate" && here > 1)
    printer.line("memory beside the arenas: grew by %lld bytes behind the first step",
                 static_cast<long long>(privateBytes() - privateAtFirst));
  if (gpuBesideAtFirst)
    printer.line("memory of GPUs beside the arenas: grew by %lld bytes behind the first step",
                 static_cast<long long>(gpuBytesBeside() - gpuBesideAtFirst));
  if (validationBatches && !isToEnd())
    printer.line("validation loss %.4f nats per token (%llu batch%s)", validationLoss,
                 (ull)validationBatches, validationBatches == 1 ? "" : "es");
}

/// Nothing has changed but the blocks, so the step can be taken once more to see where it comes
/// from.
void Trainer::failNonfinite() {
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    call(fsdprt_session_write_block, session.get(), rank,
         static_cast<const float *>(&blocksBefore[size_t(rank) * FSDPRT_BLOCK_SIZE]));
  char origin[512] = "";
  if (options.onlyKinds.empty())
    call(fsdprt_session_find_nonfinite, session.get(), "step", static_cast<char *>(origin),
         sizeof origin);
  failed(
      "%s: loss or gradient norm is not finite, no parameter was changed%s%s; lower --lr, compile "
      "with "
      "--clip-grad-norm, look at the inputs and initial values, or go on with --on-nonfinite=skip",
      nonfinite, *origin ? "; " : "", origin);
}

int Trainer::judgeAllocations() {
  if (!options.assertNoAllocations)
    return 0;
  if (countedAllocations() == 0) {
    printer.line("no memory was allocated from the first step to the last%s",
                 saver.isOpen() ? ", but by saves" : "");
    return 0;
  }
  failed("expected no allocation from the first step to the last, found %llu; the first was of %zu "
         "bytes, called "
         "before %p",
         (ull)countedAllocations(), firstAllocationSize(), firstAllocationPlace());
}

/// Says why the run ended before its last step, if it did.
void Trainer::reportEnd() {
  if (agreed.signal == 0 || stepsDone == options.steps)
    return;
  printer.line("interrupted after step %llu of %llu%s", (ull)stepsDone, (ull)options.steps,
               options.exportTo.empty() && !saver.isOpen()
                   ? "; without --save or --export the weights are lost"
                   : "");
}

int Trainer::run() {
  try {
    return runSteps();
  } catch (const Error &error) {
    call(fsdprt_session_fail, session.get(), error.status);
    // In a process of several the one that started them writes it.
    if (error.status != FSDPRT_HUNG || options.launchedRank)
      throw;
    std::string path = flightRecordPath(options), reason = error.what();
    call(fsdprt_session_write_flight_record, static_cast<const fsdprt_session *>(session.get()),
         path.c_str(), reason.c_str());
    throw Error(error.status, reason + "; the last collectives of all ranks are in " + path);
  } catch (const std::exception &) {
    call(fsdprt_session_fail, session.get(), FSDPRT_FAILED);
    throw;
  }
}

int Trainer::runSteps() {
  touchStack();
  announce();
  initialise();
  if (options.fault == Fault::skipShardElement)
    planFault();
  if (isRoot)
    metrics.open(options.metrics, options.tensorboard, stepsBefore);
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session.get(), &placed);
  PeakRates peak;
  if (options.profile && options.device == "cpu")
    peak = measurePeakRates(placed.local_ranks * placed.threads_per_rank, placed.local_ranks);
  catchInterrupts(options.needsRendezvous && isRoot ? Interrupts::said
                  : options.needsRendezvous         ? Interrupts::quiet
                  : options.launchedRank            ? Interrupts::launched
                                                    : Interrupts::said);
  train();
  if (saver.isOpen() && !agreed.differs && !*nonfinite && stepsDone > stepSaved)
    save();
  reportEnd();
  if (metrics.isOpen())
    metrics.commit();
  if (*nonfinite)
    failNonfinite();
  if (options.profile && isRoot && !agreed.differs && stepsDone > stepsBefore + 1)
    printProfile(session.get(), stepsDone - stepsBefore - 1, peak, options.profileFile, printer);
  if (!options.trace.empty() && stepsDone > stepsBefore)
    writeTrace(options.trace, session.get(), stepsBefore, isRoot, printer);
  if (options.check && !agreed.differs)
    compareWithReference();
  agree();
  if (!agreed.differs && !options.exportTo.empty()) {
    exportWeights(options.exportTo, artifact, session.get(), isRoot);
    printer.line("weights: written to %s", options.exportTo.c_str());
  }
  if (agreed.spoiled)
    failSpoiled();
  bool interrupted = agreed.signal && stepsDone < options.steps;
  int code = agreed.differs ? FSDPRT_FAILED
             : interrupted  ? 128 + agreed.signal
                            : judgeAllocations();
  if (std::string random = describeRandom("random data"); !random.empty())
    printer.line("note: this was a run on %s: its loss says nothing of a model", random.c_str());
  call(fsdprt_session_leave, session.get());
  return code;
}
