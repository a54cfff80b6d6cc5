//===- TrainingData.h - What feeds the inputs of a run ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// tokens, targets     --text or --data
//     any input           --input NAME=FILE
//     no file at all      random ids and numbers for every input
//
// Beside a file, an input that none feeds would be random: that is an error, unless --synthetic
// names it. The first and the last line of a run say which inputs are random.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_TRAININGDATA_H
#define FSDPRT_TRAIN_TRAININGDATA_H

#include "io/Batches.h"
#include "train/RunAgreement.h"
#include "train/SaveIndex.h"
#include "train/TrainingRun.h"

namespace fsdprt {

class TrainingData {
public:
  /// Opens the files that the options of `run` name. Throws Error when they are not what the inputs
  /// of the program 'step' take. `run` outlives this.
  explicit TrainingData(const TrainingRun &run);

  const std::vector<fsdprt_input_info> &getInputs() const { return inputs; }
  uint64_t tokensPerStep() const { return stepTokens; }
  /// Returns how many batches a validation has; 0: there is none.
  uint64_t validationBatches() const { return batchesToValidate; }
  /// Returns the number of tokens, or of samples, of all files.
  uint64_t samples() const;
  /// Returns `text` if all inputs are random, "`text` for a, b" if some are, or an empty text.
  std::string describeRandom(const char *text) const;

  /// Reports where inputs come from.
  void announce() const;
  /// Reports the files of which ranks have compared only a part, because the run is not saved.
  void announceComparison(const RunState &state) const;
  /// Adds what ranks compare.
  void addContents(const RunState &state, std::vector<Content> &all) const;

  /// Fills in what a save says of the data.
  void describe(RunState &state) const;
  /// Refuses other data than that of the save in `folder`, unless --other-data allows it. `own` is
  /// the description of this data.
  void expectDataOf(const RunState &saved, const RunState &own, const std::string &folder) const;

  /// Writes the inputs of step `number`, from 0, or of a batch to validate, for the ranks here;
  /// with `reference` for it, too. Allocates nothing. Throws InputChanged.
  void writeInputs(uint64_t number, bool validating, bool reference);
  /// Returns true if inputs come from files.
  bool readsFiles() const { return batches->readFiles(); }
  /// Throws InputChanged when a file has changed since it was opened.
  void expectUnchanged() const { batches->expectUnchanged(); }

private:
  void listInputs(uint64_t &limit);
  void checkNames() const;
  void openFiles();
  void checkFed() const;
  void planValidation();
  std::string whyNothingToValidate() const;
  void announceRows(const std::string &windows) const;
  void expectInputsOf(const RunState &saved, const RunState &own, const char *folder,
                      const char *advice) const;

  const TrainingRun &run;
  const TrainingOptions &options;
  std::vector<fsdprt_input_info> inputs;
  std::unique_ptr<TokenFile> tokens;
  std::vector<std::unique_ptr<SampleFile>> files; ///< by input; null where --input names none
  std::unique_ptr<Batches> batches;
  uint64_t stepTokens = 0, batchesToValidate = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGDATA_H
