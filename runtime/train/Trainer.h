//===- Trainer.h - A training run -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trains: prepares data, ranks and weights, runs the steps, and reports results.
//
// For each step, the trainer writes the inputs and the learning rate of every rank of the process,
// runs the program 'step', and reads the step block of the first of these ranks. Each step block
// contains the mean loss over all ranks, so the trainer need not read the others. After the first
// step, no step allocates memory, but saves do.
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
  /// Runs all steps. Returns FSDPRT_FAILED if the sharded and the unsharded program have different
  /// results. If a signal has ended the run early, returns 128 plus the number of the signal.
  /// Otherwise returns 0. Throws Error.
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
  std::vector<OutputLock> locks; ///< locks by which this process claims its output files
  Saver saver;
  RunState state;                        ///< description of the run that the next save contains
  std::optional<uint64_t> stepSaved = 0; ///< step of the last save in the folder of --save, if any
  NonFiniteLimit nonFinite;
  MemoryGrowth growth;
  SaveStalls stalls;
  /// `savedBlocks` are the step blocks of all ranks before the last validation, and `blocksBefore`
  /// are the step blocks before the last step.
  std::vector<float> savedBlocks, blocksBefore;
  /// Step block of the first rank of this process after the last step.
  float lastBlock[FSDPRT_BLOCK_SIZE] = {};
  double validationLoss = -1;

  /// Data that processes exchange between steps.
  struct Word {
    int32_t signal = 0;
    uint8_t unread = 0, differs = 0, spoiled = 0;
    double cpu = 0;
  };
  std::vector<Word> words;
  /// Combines the words of all processes: the first signal, the flags that any process has set, and
  /// the sum of `cpu`.
  Word agreed;
  bool differs = false;
  char spoiled[512] = ""; ///< text about a changed input file; "" if no file has changed
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAINER_H
