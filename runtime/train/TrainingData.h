//===- TrainingData.h - Inputs of a training run ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     tokens, targets     --text or --data
//     any input           --input NAME=FILE
//     no file at all      random ids and numbers for every input
//
// An input for which no file is given has random values. If files are given for some inputs,
// --synthetic must name each of the other inputs. At its start and at its end, the run reports
// which inputs have random values.
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
  /// Opens the files that the options of `run` name. Throws Error if the content of a file does not
  /// fit the inputs of the program 'step'. `run` must outlive this object.
  explicit TrainingData(const TrainingRun &run);

  const std::vector<fsdprt_input_info> &getInputs() const { return inputs; }
  uint64_t tokensPerStep() const { return stepTokens; }
  /// Returns the number of batches of a validation, or 0 if the run does not validate.
  uint64_t validationBatches() const { return batchesToValidate; }
  /// Returns the number of tokens in the token file or, without one, the number of samples.
  uint64_t samples() const;
  /// Returns `text` if all inputs are random, and "" if no input is random. If only some inputs are
  /// random, returns `text` followed by a list of these inputs, such as "inputs: random for a, b".
  std::string describeRandom(const char *text) const;

  void announce() const;
  /// Reports those files of which the ranks compare only parts. If `state` contains hashes of whole
  /// files, because the run writes saves, the ranks compare these hashes instead of parts.
  void announceComparison(const RunState &state) const;
  /// For each file, appends to `all` the content that the ranks compare.
  void addContents(const RunState &state, std::vector<Content> &all) const;

  /// Sets those members of `state` that describe the data.
  void describe(RunState &state) const;
  /// Throws Error if the data differs from the data of the save in `folder`, unless --other-data
  /// allows it. `saved` and `own` describe the data of the save and of this run.
  void expectDataOf(const RunState &saved, const RunState &own, const std::string &folder) const;

  /// If `validating` is false, writes the inputs of step `number`. If `validating` is true, writes
  /// the inputs of validation batch `number`. The first step and the first validation batch have
  /// the number 0. Writes these inputs to the ranks of this process. If `reference` is true, also
  /// writes them to the reference program. Throws InputChanged if a file has changed since it was
  /// opened. Allocates no memory.
  void writeInputs(uint64_t number, bool validating, bool reference);
  bool readsFiles() const { return batches->readFiles(); }
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
  /// for each input: the file of --input, or null if there is none
  std::vector<std::unique_ptr<SampleFile>> files;
  std::unique_ptr<Batches> batches;
  uint64_t stepTokens = 0, batchesToValidate = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_TRAININGDATA_H
