//===- Resume.cpp - Saving and resuming a run -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Before memory is allocated, the save is searched for and its files are checked. The seed, the
//     learning rates and the validation fraction are taken from the save, unless the user has set
//     the corresponding options.
//  2. The data must be equal to the data of the save (TrainingData.h).
//  3. The program 'init' runs first. After that, the states and the step blocks are loaded. The
//     number of the next step is the number of steps in the save plus 1. If the save was written by
//     a run of another artifact, a note reports the differences between the artifacts.
//
//===----------------------------------------------------------------------===//

#include "core/FutexEvent.h"
#include "core/NumberText.h"
#include "train/Trainer.h"

using namespace fsdprt;
using ull = unsigned long long;

void Trainer::openSave() {
  TrainingOptions &wanted = run.options;
  resumed.open(options.resume, options.artifact, run.artifact, options.launchedRank);
  if (run.isRoot && !resumed.fallback().empty())
    reporter.warning("%s; resuming from %s, the newest undamaged save", resumed.fallback().c_str(),
                     resumed.getFolder().c_str());
  const RunState &saved = resumed.state();
  run.stepsBefore = run.stepsDone = saved.step;
  stepSaved = saved.step;
  nonFinite.resume(saved.nonfiniteSteps);
  if (options.steps < saved.step)
    badInput("--steps: expected at least the %llu steps that %s has completed, found %llu",
             (ull)saved.step, resumed.getFolder().c_str(), (ull)options.steps);
  if (options.seed && *options.seed != saved.seed && !options.otherData)
    badInput(
        "--seed: %s has seed %llu, found %llu; omit the option, or resume with other samples by "
        "--other-data",
        resumed.getFolder().c_str(), (ull)saved.seed, (ull)*options.seed);
  wanted.seed = options.seed.value_or(saved.seed);
  wanted.lr = options.lr.value_or(saved.rate.lr);
  if (saved.rate.decaySteps && !options.minimumLr)
    wanted.minimumLr = saved.rate.minimum;
  auto take = [&](const char *name, auto &value, auto from) {
    if (!options.given.count(name))
      value = from;
  };
  take("--warmup", wanted.warmupSteps, saved.rate.warmupSteps);
  take("--lr-decay-steps", wanted.decaySteps, saved.rate.decaySteps);
  take("--val-fraction", wanted.validationFraction, saved.validationFraction);
  take("--overfit", wanted.overfit, saved.overfit);
  take("--random-extra-ids", wanted.extraIds, saved.extraIds);
}

void Trainer::loadSave() {
  double start = monotonicSeconds();
  resumed.load(run.session.get(), check.has_value());
  reporter.line("resumed after step %llu of %s in %.2f s", (ull)run.stepsBefore,
                resumed.getFolder().c_str(), monotonicSeconds() - start);
  if (std::string remark = resumed.remark(state); !remark.empty())
    reporter.line("note: %s", remark.c_str());
  const LearningRate &saved = resumed.state().rate;
  if (saved.lr != rate.lr || saved.minimum != rate.minimum ||
      saved.warmupSteps != rate.warmupSteps || saved.decaySteps != rate.decaySteps)
    reporter.line("note: the learning rate differs from the save's: expected %g, minimum %g, "
                  "warm-up %llu, decay to step %llu; found %g, %g, %llu, %llu",
                  saved.lr, saved.minimum, (ull)saved.warmupSteps, (ull)saved.decaySteps, rate.lr,
                  rate.minimum, (ull)rate.warmupSteps, (ull)rate.decaySteps);
  if (run.stepsBefore == options.steps)
    reporter.line("note: all steps of --steps=%llu are done", (ull)options.steps);
}

void Trainer::announceSave(uint64_t step, uint64_t bytes, double seconds, const char *how) const {
  char text[32];
  reporter.line("saved step %llu: %s/%s, %s in %.2f s%s", (ull)step, saver.getPath().c_str(),
                saveName(step).c_str(), shortBytes(bytes, text), seconds, how);
}

/// Writes a save before the next step begins, or starts a save that is written while the next steps
/// run. If an earlier save is still being written, waits for it first, because the session has
/// space for only one copy of the states.
void Trainer::save(bool isLast) {
  double start = monotonicSeconds();
  pollSave(/*waits=*/true);
  tell([](TrainingObserver &observer) { observer.beforeSave(); });
  state.step = run.stepsDone;
  state.nonfiniteSteps = nonFinite.count();
  auto begun = [&] { tell([&](TrainingObserver &observer) { observer.duringSave(run); }); };
  bool waits = isLast || options.waitForSaves || run.info.snapshot_bytes == 0;
  if (waits)
    announceSave(run.stepsDone, saver.save(state, run.session.get(), begun),
                 monotonicSeconds() - start, "");
  else
    saver.start(state, run.session.get(), begun);
  stepSaved = run.stepsDone;
  tell([](TrainingObserver &observer) { observer.afterSave(); });
  stalls.add(monotonicSeconds() - start, !waits);
}

/// If a save is being written, continues it. If `waits` is true, waits until this save is complete.
void Trainer::pollSave(bool waits) {
  if (!saver.isBusy())
    return;
  double start = monotonicSeconds();
  std::optional<FinishedSave> done =
      waits ? saver.wait(run.session.get()) : saver.poll(run.session.get());
  if (!waits)
    stalls.extend(monotonicSeconds() - start);
  if (done)
    announceSave(done->step, done->bytes, done->seconds, ", while training continued");
}
