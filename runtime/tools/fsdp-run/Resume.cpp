//===- Resume.cpp - Going on where a run ended ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The save is found, and its files are checked, before memory is taken; seed, rates and
//     validation part come from it where the user gave none.
//  2. The tokens have to be those of the save.
//  3. 'init' runs; states and step blocks are replaced; steps go on behind the save's.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"
#include "core/FutexEvent.h"
#include <algorithm>
#include <cstdio>

using namespace fsdprt;
using ull = unsigned long long;

void Trainer::takeFromSave() {
  resumed.open(options.resume, options.artifact, artifact, options.launchedRank);
  if (isRoot && !resumed.fallback().empty())
    std::fprintf(stderr, "fsdp-run: warning: %s; going on from %s, the newest save that is whole\n",
                 resumed.fallback().c_str(), resumed.getFolder().c_str());
  const RunState &saved = resumed.state();
  stepsBefore = stepsDone = stepSaved = saved.step;
  nonfiniteSteps = saved.nonfiniteSteps;
  if (options.steps < saved.step)
    badInput("--steps: expected at least the %llu that %s has behind it, found %llu",
             (ull)saved.step, resumed.getFolder().c_str(), (ull)options.steps);
  if (options.seed && *options.seed != saved.seed && !options.otherData)
    badInput("--seed: %s has seed %llu, found %llu; leave it out, or go on with other samples with "
             "--other-data",
             resumed.getFolder().c_str(), (ull)saved.seed, (ull)*options.seed);
  auto isGiven = [&](const char *name) { return options.given.count(name) != 0; };
  options.seed = options.seed.value_or(saved.seed);
  options.lr = options.lr.value_or(saved.rate.lr);
  if (saved.rate.decaySteps && !options.minimumLr)
    options.minimumLr = saved.rate.minimum;
  if (!isGiven("--warmup"))
    options.warmupSteps = saved.rate.warmupSteps;
  if (!isGiven("--lr-decay-steps"))
    options.decaySteps = saved.rate.decaySteps;
  if (!isGiven("--val-fraction"))
    options.validationFraction = saved.validationFraction;
  if (!isGiven("--overfit"))
    options.overfit = saved.overfit;
  if (!isGiven("--random-extra-ids"))
    options.extraIds = saved.extraIds;
}

/// What saves of this run say of it.
void Trainer::describeRun() {
  state.seed = options.seed.value_or(info.seed);
  state.rate = rate;
  state.overfit = options.overfit;
  state.extraIds = options.extraIds;
  state.validationFraction = options.validationFraction;
  state.synthetic = options.synthetic;
  std::sort(state.synthetic.begin(), state.synthetic.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputFiles[i])
      state.inputs.push_back(
          {inputs[i].name, inputFiles[i]->sha256(), inputFiles[i]->getRows(),
           batches->isFixed(i) ? inputFiles[i]->getRows() : batches->trainRows()});
  if (!state.inputs.empty())
    state.source = "inputs";
  if (!tokens)
    return;
  state.source = options.text.empty() ? "tokens" : "text";
  state.dataType = tokens->typeName();
  state.dataHash = tokens->sha256();
  state.tokens = tokens->size();
  state.trainTokens = batches->trainTokens();
}

/// Refuses other files of samples than those of the save.
void Trainer::checkInputsOfSave(const char *advice) const {
  const RunState &saved = resumed.state();
  const char *folder = resumed.getFolder().c_str();
  auto find = [](const std::vector<RunState::Input> &list,
                 const std::string &name) -> const RunState::Input * {
    for (const RunState::Input &input : list)
      if (input.name == name)
        return &input;
    return nullptr;
  };
  for (const RunState::Input &own : state.inputs)
    if (!find(saved.inputs, own.name))
      badInput("--input: the run of %s had no file for input '%s'; leave it out, %s", folder,
               own.name.c_str(), advice);
  for (const RunState::Input &input : saved.inputs) {
    std::string name = printable(input.name);
    const RunState::Input *own = find(state.inputs, input.name);
    if (!own)
      badInput("%s: its run trained on a file for input '%s'; name that with --input %s=FILE, %s",
               folder, name.c_str(), name.c_str(), advice);
    if (own->hash != input.hash || own->rows != input.rows)
      badInput("--input %s: not the samples of %s: expected %llu with SHA-256 %s, found %llu with "
               "%s; name that file, %s",
               name.c_str(), folder, (ull)input.rows, printable(input.hash).c_str(), (ull)own->rows,
               own->hash.c_str(), advice);
    if (own->trainRows != input.trainRows)
      badInput("--val-fraction: the run of %s trained on the first %llu samples, found %llu; leave "
               "it out, %s",
               folder, (ull)input.trainRows, (ull)own->trainRows, advice);
  }
  if (saved.synthetic != state.synthetic)
    badInput("--synthetic: expected the inputs that were random in the run of %s; name these, %s",
             folder, advice);
}

void Trainer::checkDataOfSave() const {
  const RunState &saved = resumed.state();
  const char *folder = resumed.getFolder().c_str();
  const std::string &file = options.text.empty() ? options.data : options.text;
  const char *advice = "or go on with other samples with --other-data";
  if (options.otherData)
    return;
  if (saved.dataHash.empty() != state.dataHash.empty())
    badInput("%s: its run trained on %s; %s, %s", folder,
             !saved.dataHash.empty() ? "a file of tokens"
             : saved.inputs.empty()  ? "random ids"
                                     : "files of samples",
             saved.dataHash.empty() ? "leave --text and --data out"
                                    : "name that with --text or --data",
             advice);
  checkInputsOfSave(advice);
  if (saved.dataHash != state.dataHash || saved.dataType != state.dataType)
    badInput("%s: not the tokens of %s: expected %llu of type %s with SHA-256 %s, found %llu of "
             "type %s with %s; name "
             "that file, %s",
             file.c_str(), folder, (ull)saved.tokens, printable(saved.dataType).c_str(),
             printable(saved.dataHash).c_str(), (ull)state.tokens, state.dataType.c_str(),
             state.dataHash.c_str(), advice);
  if (saved.trainTokens != state.trainTokens)
    badInput("--val-fraction: the run of %s trained on the first %llu tokens, found %llu; leave it "
             "out, %s",
             folder, (ull)saved.trainTokens, (ull)state.trainTokens, advice);
  if (saved.overfit != state.overfit)
    badInput("--overfit: the run of %s saw new samples at every step; leave it out, %s", folder,
             advice);
  if (saved.extraIds != state.extraIds)
    badInput("--random-extra-ids: the run of %s had %g, found %g; leave it out, %s", folder,
             saved.extraIds, state.extraIds, advice);
}

void Trainer::loadSave() {
  double start = monotonicSeconds();
  resumed.load(session.get(), options.check);
  printer.line("resumed behind step %llu of %s in %.2f s", (ull)stepsBefore,
               resumed.getFolder().c_str(), monotonicSeconds() - start);
  const LearningRate &saved = resumed.state().rate;
  if (saved.lr != rate.lr || saved.minimum != rate.minimum ||
      saved.warmupSteps != rate.warmupSteps || saved.decaySteps != rate.decaySteps)
    printer.line("note: the learning rate is not the save's: expected %g, at least %g, warm-up "
                 "%llu, decay to step "
                 "%llu; now %g, %g, %llu, %llu",
                 saved.lr, saved.minimum, (ull)saved.warmupSteps, (ull)saved.decaySteps, rate.lr,
                 rate.minimum, (ull)rate.warmupSteps, (ull)rate.decaySteps);
  if (stepsBefore == options.steps)
    printer.line("note: no step is left of --steps=%llu", (ull)options.steps);
}

void Trainer::save() {
  double start = monotonicSeconds();
  state.step = stepsDone;
  state.nonfiniteSteps = nonfiniteSteps;
  for (uint32_t rank = firstRank; rank < lastRank; ++rank)
    if (rankFault.isAt(RankFault::Phase::save, rank, stepsDone))
      saver.injectFault(rankFault);
  uint64_t bytes = saver.save(state, session.get());
  stepSaved = stepsDone;
  char text[32];
  printer.line("saved step %llu: %s/%s, %s in %.2f s", (ull)stepsDone, saver.getPath().c_str(),
               saveName(stepsDone).c_str(), shortBytes(bytes, text), monotonicSeconds() - start);
}
