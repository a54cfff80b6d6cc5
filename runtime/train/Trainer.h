//===- Trainer.h - A run from its first step to its last --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// prepare (artifact, data, ranks, weights) - step after step - report.
//
// A step: inputs of every rank, the learning rate into every step block, the program 'step', the
// block of rank 0 back. Losses are means over all ranks already. From the first step to the last
// nothing is allocated but by saves: all buffers are made before.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAINER_H
#define FSDPRT_TRAIN_TRAINER_H

#include "io/OutputLock.h"
#include "train/NonFiniteLimit.h"
#include "train/RunReports.h"
#include "train/SavedRun.h"
#include "train/Saver.h"
#include "train/TrainingData.h"
#include "train/TrainingObserver.h"
#include "train/UnshardedCheck.h"

namespace fsdprt {

class Trainer {
public:
  /// Refuses everything that can be refused, before memory is taken or a file written: throws
  /// Error. `artifact`, `reporter` and `observers` outlive this.
  Trainer(const TrainingOptions &options, fsdprt_artifact *artifact, RunReporter &reporter,
          std::vector<TrainingObserver *> observers);
  /// Returns 0, or 128 + the signal that ended the run early, or FSDPRT_FAILED when the check
  /// against the unsharded program failed. Throws Error.
  int execute();

private:
  void choosePrograms() const;
  void chooseRates();
  void openSave();
  void createSession();
  void initialise();
  void loadSave();
  void train();
  bool step(uint64_t number);
  bool writeInputs(uint64_t number, bool validating);
  double validate();
  bool validateAfter(uint64_t number);
  void save();
  void agree(double cpu = 0);
  bool isToEnd();
  int executeSteps();
  void readBlocks(std::vector<float> &blocks) const;
  void writeBlocks(const std::vector<float> &blocks) const;
  [[noreturn]] void failNonfinite();
  [[noreturn]] void failSpoiled();
  template <typename Call>
  void tell(Call call) const {
    for (TrainingObserver *observer : observers)
      call(*observer);
  }

  TrainingRun run;
  const TrainingOptions &options = run.options;
  RunReporter &reporter = run.reporter;
  std::vector<TrainingObserver *> observers;
  std::optional<TrainingData> data;
  std::optional<UnshardedCheck> check;
  LearningRate rate;
  Metrics metrics;
  SavedRun resumed;
  InitialWeights initial;
  std::vector<OutputLock> locks; ///< of the files that it writes
  Saver saver;
  RunState state;         ///< for the next save
  uint64_t stepSaved = 0; ///< the last one
  NonFiniteLimit nonFinite;
  MemoryGrowth growth;
  std::vector<float> savedBlocks, blocksBefore; ///< before a validation, and before a step
  float lastBlock[FSDPRT_BLOCK_SIZE] = {};      ///< of the first rank here, after a step
  double validationLoss = -1;

  /// What processes tell each other between steps.
  struct Word {
    int32_t signal = 0;
    uint8_t unread = 0, differs = 0, spoiled = 0;
    double cpu = 0;
  };
  std::vector<Word> words;
  Word agreed; ///< the first signal, any flag, the sum
  bool differs = false;
  char spoiled[512] = ""; ///< why inputs of this process cannot be used any more
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAINER_H
