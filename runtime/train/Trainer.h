//===- Trainer.h - A training run -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trains: prepares data, ranks and weights, runs the steps, and reports results.
//
// A step writes the inputs and the learning rate of every rank of the process, runs the program
// 'step', and reads the step block of the first of these ranks. The loss in each step block is the
// mean over all ranks. From the second step to the last one, only saves allocate memory.
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
  /// Checks the options, opens all files, and creates the session. Throws Error. `artifact`,
  /// `reporter` and the objects in `observers` must outlive the trainer.
  Trainer(const TrainingOptions &options, fsdprt_artifact *artifact, RunReporter &reporter,
          std::vector<TrainingObserver *> observers);
  /// Runs all steps. Returns FSDPRT_FAILED if the check against the unsharded program failed, 128
  /// plus the number of the signal if a signal ended the run early, or 0. Throws Error.
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
  void save(bool isLast = false);
  void pollSave(bool waits = false);
  void announceSave(uint64_t step, uint64_t bytes, double seconds, const char *how) const;
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
  std::vector<OutputLock> locks; ///< claims of this process on its output files
  Saver saver;
  RunState state;                        ///< state for the next save
  std::optional<uint64_t> stepSaved = 0; ///< step of the last save in the folder of --save
  NonFiniteLimit nonFinite;
  MemoryGrowth growth;
  SaveStalls stalls;
  std::vector<float> savedBlocks, blocksBefore; ///< step blocks before validation or a step
  float lastBlock[FSDPRT_BLOCK_SIZE] = {};      ///< first rank's step block after the last step
  double validationLoss = -1;

  /// Data that processes exchange between steps.
  struct Word {
    int32_t signal = 0;
    uint8_t unread = 0, differs = 0, spoiled = 0;
    double cpu = 0;
  };
  std::vector<Word> words;
  Word agreed; ///< first signal, ORed flags and sum of `cpu` of all processes
  bool differs = false;
  char spoiled[512] = ""; ///< description of a change of an input file, or ""
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAINER_H
