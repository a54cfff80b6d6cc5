//===- Trainer.cpp - A training run -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/Trainer.h"
#include "core/FutexEvent.h"
#include "core/NumberText.h"
#include "core/Stack.h"
#include "core/SystemCalls.h"
#include "launch/LaunchPlan.h"
#include "train/OutputPaths.h"
#include <algorithm>
#include <cstring>
#include <sys/resource.h>

using namespace fsdprt;
using ull = unsigned long long;

Trainer::Trainer(const TrainingOptions &options, fsdprt_artifact *artifact, RunReporter &reporter,
                 std::vector<TrainingObserver *> observers)
    : run{options, artifact, reporter}, observers(std::move(observers)) {
  run.isRoot = options.isRoot();
  run.info.struct_size = sizeof run.info;
  fsdprt_artifact_get_info(artifact, &run.info);
  run.ranks = static_cast<uint32_t>(run.info.ranks);
  choosePrograms();
  if (options.check)
    check.emplace(run);
  if (!options.resume.empty())
    openSave();
  chooseRates();
  data.emplace(run);
  if (!options.save.empty() || resumed.isOpen()) {
    state.seed = run.options.seed.value_or(run.info.seed);
    state.rate = rate;
    data->describe(state);
  }
  if (resumed.isOpen())
    data->expectDataOf(resumed.state(), state, resumed.getFolder());
  if (run.isRoot)
    locks = checkOutputs(options);
  if (!options.init.empty() && !resumed.isOpen())
    initial.open(options.init);
  if (resumed.isOpen() && !isSaveIn(options.save, resumed.getFolder()))
    stepSaved.reset(); // The save from which the run resumes is not in the folder of --save.
  if (!options.save.empty())
    saver.open(options.save, resumed.getFolder(), !resumed.fallback().empty(), options.keep,
               artifact, options.launchedRank);
  createSession();
}

void Trainer::choosePrograms() const {
  if (!options.offloadDirectory.empty() && run.info.file_bytes == 0)
    badInput("--offload-dir: %s offloads nothing to a file; compile with --offload=optimizer:file",
             options.artifact.c_str());
  for (const char *program : {"init", "step"})
    if (!fsdprt_artifact_has_program(run.artifact, program))
      badInput("%s: has no program '%s'; it cannot be trained", options.artifact.c_str(), program);
}

void Trainer::chooseRates() {
  rate.lr = options.lr.value_or(run.info.lr);
  rate.minimum = options.minimumLr.value_or(0);
  if (rate.minimum > rate.lr)
    badInput("--min-lr: expected at most the learning rate, %g, found %g", rate.lr, rate.minimum);
  rate.warmupSteps = options.warmupSteps;
  rate.decaySteps = options.decaySteps ? options.decaySteps : options.minimumLr ? options.steps : 0;
}

void Trainer::createSession() {
  fsdprt_session_options wanted = {};
  wanted.struct_size = sizeof wanted;
  wanted.ranks = options.ranks;
  wanted.threads_per_rank = options.threadsPerRank;
  wanted.with_reference = check && run.isRoot;
  wanted.rank = options.launchedRank.value_or(0);
  wanted.channel = options.launchedChannel;
  wanted.steps_before = run.stepsBefore;
  wanted.device = options.device.c_str();
  wanted.cuda_graph = options.cudaGraph;
  wanted.restrict_calls = options.restrictCalls;
  wanted.gemm = options.gemm.empty() ? nullptr : options.gemm.c_str();
  wanted.backend = options.backend.c_str();
  if (options.backend == "nccl") {
    wanted.control = options.control.c_str();
    wanted.nccl_windows = options.ncclWindows.empty() ? nullptr : options.ncclWindows.c_str();
    wanted.nccl_cta_policy =
        options.ncclCtaPolicy.empty() ? nullptr : options.ncclCtaPolicy.c_str();
    wanted.nccl_max_ctas = options.ncclMaxCtas;
    wanted.local_rank =
        options.place && options.place->localRank ? *options.place->localRank + 1 : 0;
  }
  wanted.timeout_seconds = options.timeoutSeconds;
  wanted.heartbeat_seconds = options.heartbeatGiven ? options.heartbeatSeconds : 0;
  wanted.offload_directory =
      options.offloadDirectory.empty() ? nullptr : options.offloadDirectory.c_str();
  wanted.seed = options.seed.value_or(run.info.seed);
  wanted.profile = options.profile;
  wanted.link_bytes_per_second = options.linkBandwidth;
  wanted.trace_runs = options.trace.empty() ? 0 : options.traceSteps;
  std::vector<Content> contents;
  if (options.launchedRank) {
    data->addContents(state, contents);
    if (resumed.isOpen())
      contents.push_back({"the save to resume from", resumed.sha256(), resumed.getFolder()});
    if (!initial.getFiles().empty())
      contents.push_back({"--init", initial.comparison(), initial.getPath()});
  }
  std::string agreement = agreementOf(options, rate.lr, data->samples(), run.stepsBefore, contents);
  wanted.agreement = agreement.c_str();
  wanted.meeting_seconds = options.rendezvousSeconds;
  wanted.own_sums = options.mpiReduce == "library";
  wanted.ranks_on_machine = options.place ? options.place->localRanks.value_or(0) : 0;
  tell([&](TrainingObserver &observer) { observer.beforeSession(run, wanted); });
  if (options.restrictCalls)
    restrictProcess();
  fsdprt_session *created = nullptr;
  call(fsdprt_session_create, static_cast<const fsdprt_artifact *>(run.artifact), &wanted,
       &created);
  run.session.reset(created);
  fsdprt_session_info placed = run.measure();
  run.firstRank = placed.first_rank;
  run.lastRank = run.firstRank + placed.local_ranks;
  run.processes = placed.processes;
  words.resize(run.processes);
  savedBlocks.resize(size_t(run.ranks) * FSDPRT_BLOCK_SIZE);
  blocksBefore.resize(savedBlocks.size());
  if (check)
    check->expectInputs(data->getInputs());
}

void Trainer::initialise() {
  call(fsdprt_session_run, run.session.get(), "init");
  if (check)
    check->initialise();
  if (resumed.isOpen())
    return loadSave();
  announceWeights(run, options.init.empty()
                           ? modelWeights(run.artifact)
                           : importWeights(initial, run.artifact, run.session.get()));
}

/// Tells all processes whether a process requests the end of the run. All processes therefore end
/// after the same step. Every process must call agree() equally often.
void Trainer::agree(double cpu) {
  Word mine = {0, reporter.isUnread(), differs, *spoiled != 0, cpu};
  for (const TrainingObserver *observer : observers)
    mine.signal = mine.signal ? mine.signal : observer->requestedEnd();
  call(fsdprt_session_exchange, run.session.get(), static_cast<const void *>(&mine), sizeof mine,
       static_cast<void *>(words.data()));
  agreed.cpu = 0;
  for (const Word &word : words) {
    agreed.signal = agreed.signal ? agreed.signal : word.signal;
    agreed.unread |= word.unread;
    agreed.differs |= word.differs;
    agreed.spoiled |= word.spoiled;
    agreed.cpu += word.cpu;
  }
  run.differs |= agreed.differs != 0;
}

bool Trainer::isToEnd() {
  if (run.processes == 1)
    agree(agreed.cpu);
  return agreed.signal != 0 || agreed.unread || agreed.spoiled;
}

/// Throws an Error that reports the change of an input file. All processes throw the same error. If
/// several ranks have detected a change, the error describes the change that the lowest rank has
/// detected.
void Trainer::failSpoiled() {
  std::vector<char> all(sizeof spoiled * run.processes);
  call(fsdprt_session_exchange, run.session.get(), static_cast<const void *>(spoiled),
       sizeof spoiled, static_cast<void *>(all.data()));
  std::string reason;
  for (uint32_t i = 0; i < run.processes && reason.empty(); ++i)
    if (all[i * sizeof spoiled])
      reason = (run.processes > 1 ? format("rank %u: ", i) : "") + &all[i * sizeof spoiled];
  bool kept = saver.isOpen() || !options.exportTo.empty();
  failed("%s; the run ended after step %llu of %llu, the last one with unchanged inputs%s",
         reason.c_str(), (ull)run.stepsDone, (ull)options.steps,
         kept ? "" : "; without --save or --export the weights are lost");
}

void Trainer::readBlocks(std::vector<float> &blocks) const {
  for (uint32_t rank = run.firstRank; rank < run.lastRank; ++rank)
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(run.session.get()), rank,
         &blocks[size_t(rank) * FSDPRT_BLOCK_SIZE]);
}

void Trainer::writeBlocks(const std::vector<float> &blocks) const {
  for (uint32_t rank = run.firstRank; rank < run.lastRank; ++rank)
    call(fsdprt_session_write_block, run.session.get(), rank,
         &blocks[size_t(rank) * FSDPRT_BLOCK_SIZE]);
}

/// Writes the inputs of a step, or of a validation batch. If an input file of any process has
/// changed since this file was opened, returns false in all processes. The check comes after the
/// inputs have been read and before the step runs. Changed content therefore never affects the
/// states.
bool Trainer::writeInputs(uint64_t number, bool validating) {
  bool reference = check && run.isRoot && !validating;
  if (!data->readsFiles()) {
    data->writeInputs(number, validating, reference);
    return true;
  }
  try {
    data->writeInputs(number, validating, reference);
    data->expectUnchanged();
  } catch (const InputChanged &change) {
    std::strncpy(spoiled, change.what(), sizeof spoiled - 1);
  }
  agree();
  return !agreed.spoiled;
}

/// Runs a step and returns true. If input files have changed, runs no step and returns false.
bool Trainer::step(uint64_t number) {
  if (!writeInputs(number - 1, false))
    return false;
  float lr = static_cast<float>(rate.at(number));
  for (uint32_t rank = run.firstRank; rank < run.lastRank; ++rank)
    run.setRate(rank, lr);
  readBlocks(blocksBefore);
  tell([&](TrainingObserver &observer) { observer.beforeStep(run); });
  call(fsdprt_session_run, run.session.get(), "step");
  tell([&](TrainingObserver &observer) { observer.afterStep(run); });
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(run.session.get()),
       run.firstRank, static_cast<float *>(lastBlock));
  return true;
}

/// Returns the mean of the losses of all validation batches. If isToEnd() is true after the call,
/// the result is invalid. The step blocks have the same values before and after the call.
double Trainer::validate() {
  readBlocks(savedBlocks);
  double sum = 0;
  for (uint64_t batch = 0; batch < data->validationBatches() && !isToEnd(); ++batch) {
    float block[FSDPRT_BLOCK_SIZE];
    if (!writeInputs(batch, true))
      break;
    call(fsdprt_session_run, run.session.get(), "eval");
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(run.session.get()),
         run.firstRank, static_cast<float *>(block));
    agree();
    sum += block[FSDPRT_BLOCK_LOSS];
  }
  writeBlocks(savedBlocks);
  return sum / static_cast<double>(data->validationBatches());
}

/// If a validation must follow step `number`, runs this validation, sets `validationLoss` and
/// returns true.
bool Trainer::validateAfter(uint64_t number) {
  bool last = number == options.steps;
  if (!data->validationBatches() ||
      !(last || (options.validateEvery && number % options.validateEvery == 0)))
    return false;
  validationLoss = validate();
  if (isToEnd())
    return false;
  if (!last)
    reporter.line("step %llu: validation loss %.4f nats per token", (ull)number,
                  printableNumber(validationLoss));
  return true;
}

/// Returns the CPU time that all threads of this process have used, in seconds.
static double cpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Trainer::train() {
  if (data->validationBatches() && options.validateEvery) {
    double loss = validate();
    if (!isToEnd())
      reporter.line("before training: validation loss %.4f nats per token", printableNumber(loss));
  }
  double began = monotonicSeconds(), firstLoss = 0, lastLoss = 0;
  StepCost all;
  agree();
  tell([](TrainingObserver &observer) { observer.beforeSteps(); });
  for (uint64_t number = run.stepsBefore + 1; number <= options.steps && !run.differs && !isToEnd();
       ++number) {
    fsdprt_session_info before = run.measure();
    double start = monotonicSeconds(), startCpu = cpuSeconds();
    if (!step(number))
      break;
    StepCost cost;
    cost.seconds = std::max(monotonicSeconds() - start, 1e-9);
    cost.cpuSeconds = cpuSeconds() - startCpu;
    cost.tokens = data->tokensPerStep();
    all.seconds += cost.seconds;
    all.tokens += cost.tokens;
    run.stepsDone = number;
    fsdprt_session_info after = run.measure();
    for (size_t kind = 0; kind < 4; ++kind)
      cost.exchanged[kind] = after.collective_bytes[kind] - before.collective_bytes[kind];
    cost.exchanged[4] = after.shift_bytes - before.shift_bytes;
    float block[FSDPRT_BLOCK_SIZE];
    std::memcpy(block, lastBlock, sizeof block);
    lastLoss = block[FSDPRT_BLOCK_LOSS];
    bool first = number == run.stepsBefore + 1;
    firstLoss = first ? lastLoss : firstLoss;
    double done = monotonicSeconds() - began;
    reporter.step({number, options.steps, lastLoss, block[FSDPRT_BLOCK_GRAD_NORM],
                   block[FSDPRT_BLOCK_LR], static_cast<double>(cost.tokens) / cost.seconds,
                   done / static_cast<double>(number - run.stepsBefore) *
                       static_cast<double>(options.steps - number),
                   !options.onlyKinds.empty()});
    if (options.profile && first)
      call(fsdprt_session_clear_profile, run.session.get());
    if (check && !check->step(number, block))
      differs = true;
    agree(cost.cpuSeconds);
    cost.cpuSeconds = agreed.cpu;
    pollSave();
    bool validated = validateAfter(number);
    cost.saveStall = stalls.take();
    if (metrics.isOpen())
      writeMetrics(metrics, run, number, block, cost, validated ? &validationLoss : nullptr);
    if (first)
      growth.begin(run);
    if (!nonFinite.allows(run, number, block))
      break;
    if (saver.isOpen() && options.saveEvery && number % options.saveEvery == 0)
      save(/*isLast=*/number == options.steps);
  }
  tell([](TrainingObserver &observer) { observer.afterSteps(); });
  reporter.endSteps();
  if (run.differs || run.stepsDone == run.stepsBefore || nonFinite.isExceeded())
    return;
  summarise(run, all, firstLoss, lastLoss);
  if (!options.onlyKinds.empty())
    return;
  growth.report(run);
  stalls.report(run, all.seconds);
  if (uint64_t batches = data->validationBatches(); batches && !isToEnd())
    reporter.line("validation loss %.4f nats per token (%llu batch%s)",
                  printableNumber(validationLoss), (ull)batches, batches == 1 ? "" : "es");
}

/// Restores the step blocks and repeats the last step to find the operation that has produced a
/// non-finite number. Then throws Error. A non-finite step changes only the step blocks, so the
/// repeated step computes the same values.
void Trainer::failNonfinite() {
  writeBlocks(blocksBefore);
  char origin[512] = "";
  if (options.onlyKinds.empty())
    call(fsdprt_session_find_nonfinite, run.session.get(), "step", static_cast<char *>(origin),
         sizeof origin);
  failed(
      "%s: loss or gradient norm is not finite, no parameter was changed%s%s; lower --lr, compile "
      "with --clip-grad-norm, check the inputs and initial values, or continue with "
      "--on-nonfinite=skip",
      nonFinite.reason(), *origin ? "; " : "", origin);
}

int Trainer::execute() {
  try {
    return executeSteps();
  } catch (const Error &error) {
    call(fsdprt_session_fail, run.session.get(), error.status);
    // If each process has one rank, the process that supervises the ranks writes the flight record.
    if (error.status != FSDPRT_HUNG || options.launchedRank)
      throw;
    std::string path = flightRecordPath(options), reason = error.what();
    call(fsdprt_session_write_flight_record, static_cast<const fsdprt_session *>(run.session.get()),
         path.c_str(), reason.c_str());
    throw Error(error.status, reason + "; the last collectives of all ranks are in " + path);
  } catch (const std::exception &) {
    call(fsdprt_session_fail, run.session.get(), FSDPRT_FAILED);
    throw;
  }
}

int Trainer::executeSteps() {
  touchStack();
  announceSession(run, data->describeRandom(", on random data"));
  data->announce();
  if (run.processes > 1) {
    data->announceComparison(state);
    for (const auto &file : initial.getFiles())
      run.announceComparison(file->getFile());
  }
  initialise();
  if (run.isRoot)
    metrics.open(options.metrics, options.tensorboard, run.stepsBefore);
  tell([&](TrainingObserver &observer) { observer.beforeTraining(run); });
  train();
  pollSave(/*waits=*/true);
  if (saver.isOpen() && !run.differs && !nonFinite.isExceeded() && stepSaved != run.stepsDone)
    save(/*isLast=*/true);
  if (agreed.signal != 0 && run.stepsDone != options.steps)
    reporter.line("interrupted after step %llu of %llu%s", (ull)run.stepsDone, (ull)options.steps,
                  options.exportTo.empty() && !saver.isOpen()
                      ? "; without --save or --export the weights are lost"
                      : "");
  if (metrics.isOpen())
    metrics.commit();
  if (nonFinite.isExceeded())
    failNonfinite();
  tell([&](TrainingObserver &observer) { observer.afterTraining(run); });
  if (check && !run.differs && !check->compare())
    differs = true;
  agree();
  if (!run.differs && !options.exportTo.empty()) {
    exportWeights(options.exportTo, run);
    reporter.line("weights: written to %s", options.exportTo.c_str());
  }
  if (agreed.spoiled)
    failSpoiled();
  int code = run.differs                                      ? FSDPRT_FAILED
             : agreed.signal && run.stepsDone < options.steps ? 128 + agreed.signal
                                                              : 0;
  if (code == 0)
    tell([&](TrainingObserver &observer) { observer.afterRun(run); });
  if (std::string random = data->describeRandom("random data"); !random.empty())
    reporter.line("note: this was a run on %s: its loss says nothing about a model",
                  random.c_str());
  call(fsdprt_session_leave, run.session.get());
  return code;
}
