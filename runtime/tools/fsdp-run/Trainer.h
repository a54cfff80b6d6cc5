//===- Trainer.h - A run from its first step to its last --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// prepare (artifact, tokens, ranks, weights) - step after step - report.
//
// From the first step to the last nothing is allocated; all buffers are made by
// the constructor.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUN_TRAINER_H
#define FSDP_RUN_TRAINER_H

#include "Handles.h"
#include "LaunchPlan.h"
#include "Metrics.h"
#include "Options.h"
#include "Printer.h"
#include "Saving.h"
#include "Weights.h"
#include "io/Batches.h"
#include "io/OutputLock.h"
#include "testing/faults/FaultInjection.h"
#include "train/LearningRate.h"
#include <vector>

namespace fsdprt {

class Trainer {
public:
  /// Everything that can be refused is refused here, before memory is taken or a file written.
  Trainer(const Options &options, fsdprt_artifact *artifact, Printer &printer);
  /// The exit code.
  int run();

private:
  int runSteps();

  // Inputs.cpp
  void openInputs();
  void checkInputNames() const;
  void openInputFiles();
  void checkFed() const;
  std::string whyNothingToValidate() const;
  std::string describeRandom(const char *text) const;
  void announceInputs();
  void announceRows(const std::string &drawn);
  void announceParameters();

  void createSession();
  uint64_t gpuBytesBeside() const;
  void announce();
  void initialise();
  void announceWeights(const WeightSources &sources);
  void train();
  void agree(double cpu = 0);
  bool isToEnd();
  bool step(uint64_t number);
  void copyInputs(uint64_t number, bool validating);
  void setRate(uint32_t rank, float lr);
  double validate();
  void writeMetrics(uint64_t number, const float *block, double seconds, double cpu,
                    const double *validationLoss);
  void summarise(double firstLoss, double lastLoss, double seconds);
  void reportEnd();
  bool judgeFinite(uint64_t number, const float *block);
  int judgeAllocations();
  [[noreturn]] void failNonfinite();

  // RunInputs.cpp
  std::vector<Content> contents() const;
  void announceSamples();
  bool writeInputs(uint64_t number, bool validating);
  [[noreturn]] void failSpoiled();

  // Resume.cpp
  void takeFromSave();
  void describeRun();
  void checkDataOfSave() const;
  void checkInputsOfSave(const char *advice) const;
  void loadSave();
  void save();

  // UnshardedCheck.cpp
  void stepReference(uint64_t number, const float *sharded);
  void compareWithReference();
  void planFault();
  void saveShardElement();
  void restoreShardElement();

  Options options; ///< with what a save has where the user gave nothing
  fsdprt_artifact *artifact;
  Printer &printer;
  fsdprt_artifact_info info = {};
  uint32_t ranks = 0, firstRank = 0, lastRank = 0,
           processes = 1; ///< this process has ranks [firstRank, lastRank)
  bool isRoot;            ///< it has rank 0
  std::vector<fsdprt_input_info> inputs;
  std::unique_ptr<TokenFile> tokens;
  std::vector<std::unique_ptr<SampleFile>> inputFiles; ///< by input; null where --input names none
  std::unique_ptr<Batches> batches;
  LearningRate rate;
  SessionHandle session;
  Metrics metrics;
  SavedRun resumed;
  InitialWeights initial;
  std::vector<OutputLock> claims;
  Saver saver;
  RunState state;             ///< for the next save
  uint64_t exchanged[4] = {}; ///< bytes of the last step's collectives, by kind
  uint64_t validationBatches = 0, tokensPerStep = 0, stepsBefore = 0, stepsDone = 0, stepSaved = 0;
  std::vector<float> savedBlocks, blocksBefore; ///< before a validation, and before a step

  /// What processes tell each other between steps.
  struct Word {
    int32_t signal = 0;
    uint8_t unread = 0, differs = 0, spoiled = 0;
    double cpu = 0;
  };
  std::vector<Word> words;
  Word agreed; ///< the first signal, any flag, the sum

  bool differs = false;
  uint64_t nonfiniteSteps = 0; ///< steps in a row that were not finite
  char nonfinite[64] = "";     ///< why the run ends early
  char spoiled[512] = "";      ///< why inputs of this process cannot be used any more
  RankFault rankFault;
  uint32_t faultRank = 0;
  uint64_t faultParam = 0;
  std::byte savedElement[8] = {};
  double validationLoss = -1;
  float lastBlock[FSDPRT_BLOCK_SIZE] = {};
  double trainingSeconds = 0;
  uint64_t gpuBesideAtFirst =
      0; ///< bytes of GPUs that no arena of this run has, behind the first step
  uint64_t privateAtFirst = 0; ///< bytes that no file backs, arenas included, behind the first step
};

} // namespace fsdprt

#endif // FSDP_RUN_TRAINER_H
