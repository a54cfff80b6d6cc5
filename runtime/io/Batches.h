//===- Batches.h - Samples of training steps --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sample number g of step s depends only on the seed, s and g. In the step, the number of sample i
// of a micro-batch is
//
//     g = (rank * micro_batches + micro_batch) * samples + i
//
// Therefore the samples of a step and their order do not depend on the number of ranks.
//
// The samples of an input come from one of three sources:
//
//     window   T + 1 consecutive ids of the token file; the first T ids are the tokens, and the
//              last T ids are the targets
//     row      an element of the leading dimension of a file for this input (SampleFile)
//     random   ids below their limit, or normally distributed floats, for an input without a file
//
// One random number per sample determines the first token of the window and the index of the row.
// All files of rows have the same number of rows, and a sample uses the same row of each file. In
// some inputs, for example in a table for the whole batch, the leading dimension does not count
// samples. Every step then uses all rows of the input's file. Training uses the first part of a
// file, and validation reads the rest of the file in order.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_BATCHES_H
#define FSDPRT_IO_BATCHES_H

#include "fsdprt/fsdprt.h"
#include "io/SampleFile.h"
#include "io/TokenFile.h"
#include <algorithm>
#include <vector>

namespace fsdprt {

struct BatchOptions {
  uint64_t seed = 0;
  bool overfit = false; ///< true if every step uses the samples of step 0
  double validationFraction = 0.1;
  /// Probability with which the first extra id of an input replaces a random id.
  double extraIds = 0;
};

/// Division of the elements of an input into samples.
struct SampleShape {
  uint64_t samples = 1;      ///< samples per micro-batch
  std::vector<uint64_t> row; ///< shape of one sample
};

/// Returns how the elements of input `index` are divided into samples. If the input has a file,
/// each sample is a row of the file.
SampleShape sampleShapeOf(const std::vector<fsdprt_input_info> &inputs, size_t index);

class Batches {
public:
  /// `inputs` are the inputs of the program `step`. `tokens` may be null. `files` is empty, or has
  /// one element per input: a file of rows or null.
  Batches(std::vector<fsdprt_input_info> inputs, const TokenFile *tokens, uint64_t ranks,
          const BatchOptions &options, std::vector<const SampleFile *> files = {});

  uint64_t trainTokens() const { return trainSize; }
  uint64_t validationTokens() const { return tokens ? tokens->size() - trainSize : 0; }
  /// Returns the number of rows that are used for training, or 0 if no input has a file of rows.
  uint64_t trainRows() const { return rowsToTrain; }
  uint64_t validationRows() const { return rows - rowsToTrain; }
  /// Returns true if the tokens or rows of input i come from a file.
  bool isFromFile(size_t i) const { return plans[i].file || (tokens && plans[i].window); }
  /// Returns true if every step uses the whole file of input i.
  bool isFixed(size_t i) const { return plans[i].fixed; }
  /// Returns the number of samples of input i in one step, over all ranks and micro-batches.
  uint64_t samplesPerStep(size_t i) const {
    return plans[i].samples * plans[i].info.micro_batches * ranks;
  }
  uint64_t elementsPerSample(size_t i) const { return plans[i].each; }
  /// Returns the number of batches that must be read until all validation data have been read at
  /// least once. A batch consists of the samples of all ranks. Returns 0 if no samples are reserved
  /// for validation.
  uint64_t validationBatches() const;

  /// train() and validation() return the values of input i for one micro-batch of one rank. The
  /// values are valid until the next call for input i. Both functions throw InputChanged if a file
  /// has changed, and otherwise allocate no memory.
  const void *train(uint64_t step, uint64_t rank, uint32_t microBatch, size_t i);
  const void *validation(uint64_t batch, uint64_t rank, uint32_t microBatch, size_t i);
  size_t bytes(size_t i) const { return plans[i].buffer.size(); }
  /// Throws InputChanged if a file has changed since it was opened; otherwise allocates no memory.
  void expectUnchanged() const;
  /// Returns true if any input has values from a file.
  bool readFiles() const {
    return tokens ||
           std::any_of(plans.begin(), plans.end(), [](const Plan &plan) { return plan.file; });
  }

private:
  struct Plan {
    fsdprt_input_info info;
    uint64_t samples, each; ///< samples of a micro-batch; elements of a sample
    bool window;            ///< true if the input is tokens or targets
    const SampleFile *file = nullptr;
    bool fixed = false;
    std::vector<std::byte> buffer;
  };
  void planWindows(uint64_t tokenElements);
  void planRows(const std::vector<fsdprt_input_info> &inputs,
                const std::vector<const SampleFile *> &files, uint64_t ranks);
  void splitTokens();
  uint64_t sampleKey(uint64_t step, uint64_t sample) const;
  void fillWindow(Plan &plan, uint64_t i, uint64_t start);
  void fillRandom(Plan &plan, uint64_t i, uint64_t key);
  uint64_t rowOf(const Plan &plan, uint64_t step, uint64_t first, uint64_t i, uint64_t key,
                 bool validating) const;
  const void *fill(uint64_t step, uint64_t rank, uint32_t microBatch, size_t index,
                   bool validating);

  std::vector<Plan> plans;
  std::vector<uint32_t> window; ///< ids of the current sample
  const TokenFile *tokens;
  uint64_t trainSize = 0, windowLength = 0, samplesPerBatch = 0;
  uint64_t rows = 0, rowsToTrain = 0, rowsPerBatch = 0, ranks;
  BatchOptions options;
};

} // namespace fsdprt

#endif // FSDPRT_IO_BATCHES_H
