//===- Batches.h - Which samples a step sees --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sample g of step s depends on the seed, s and g alone. Ranks take consecutive ones,
//
//     g = ((rank * micro_batches + micro_batch) * samples) + i
//
// so that the same global batch, in the same order, is seen by any number of ranks.
//
// An input's samples come from one of three sources:
//
//   window   of a file of tokens: T + 1 ids, of which T are the tokens and, shifted by one, T the
//            targets
//   row      of a file of its own (SampleFile)
//   random   ids below their limit, or floats (normal): where there is no file
//
// Sample g draws one number, which gives the start of its window and the index of its row. All
// files of rows have as many rows, and row r of each makes one sample; a window and a row of one
// sample are unrelated. An input with another leading dimension than the samples' (a table for the
// whole batch) takes a file of exactly its own rows, the same at every step. Training draws from
// the first part of a file; validation goes through the last part in order.
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
  bool overfit = false; // step 0's samples every time
  double validationFraction = 0.1;
  double extraIds = 0; // part of random ids that are the first extra one, where the input has any
};

/// How an input's elements are split into samples.
struct SampleShape {
  uint64_t samples = 1;      ///< per micro-batch
  std::vector<uint64_t> row; ///< shape of one
};

/// Returns how a file of rows for input `index` is split.
SampleShape sampleShapeOf(const std::vector<fsdprt_input_info> &inputs, size_t index);

class Batches {
public:
  /// `inputs` of the program `step`; `tokens` may be null. `files`: of rows, by input, each null or
  /// not; may be empty.
  Batches(std::vector<fsdprt_input_info> inputs, const TokenFile *tokens, uint64_t ranks,
          const BatchOptions &options, std::vector<const SampleFile *> files = {});

  uint64_t trainTokens() const { return trainSize; }
  uint64_t validationTokens() const { return tokens ? tokens->size() - trainSize : 0; }
  /// Rows of the files that samples are drawn from; 0 without such files.
  uint64_t trainRows() const { return rowsToTrain; }
  uint64_t validationRows() const { return rows - rowsToTrain; }
  /// Returns true if tokens, or rows, of input i come from a file.
  bool isFromFile(size_t i) const { return plans[i].file || (tokens && plans[i].window); }
  /// Returns true if input i takes the same rows at every step.
  bool isFixed(size_t i) const { return plans[i].fixed; }
  /// Batches (over all ranks) that cover the validation part once; 0 when it is too short.
  uint64_t validationBatches() const;

  /// The values of one rank's micro-batch of input i. Throws InputChanged. Allocates nothing unless
  /// it throws.
  const void *train(uint64_t step, uint64_t rank, uint32_t microBatch, size_t i);
  const void *validation(uint64_t batch, uint64_t rank, uint32_t microBatch, size_t i);
  size_t bytes(size_t i) const { return plans[i].buffer.size(); }
  /// Throws InputChanged when a file that batches are read from is not what it was when it was
  /// opened. Allocates nothing unless it throws.
  void expectUnchanged() const;
  /// Whether values come from a file.
  bool readFiles() const {
    return tokens ||
           std::any_of(plans.begin(), plans.end(), [](const Plan &plan) { return plan.file; });
  }

private:
  struct Plan {
    fsdprt_input_info info;
    uint64_t samples, each; // per micro-batch; elements of a sample
    bool window;            // tokens and targets of one window
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
  std::vector<uint32_t> window; // ids of the sample that is being filled in
  const TokenFile *tokens;
  uint64_t trainSize = 0, windowLength = 0, samplesPerBatch = 0;
  uint64_t rows = 0, rowsToTrain = 0, rowsPerBatch = 0;
  BatchOptions options;
};

} // namespace fsdprt

#endif // FSDPRT_IO_BATCHES_H
