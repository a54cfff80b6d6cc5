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
// A sample of tokens is a window of T + 1 ids: T tokens, and as targets the same
// shifted by one. Training windows begin anywhere in the first part of the file;
// validation goes through the last part in order. Without a file ids are random
// below their limit, and other inputs are random (floats: normal).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_BATCHES_H
#define FSDPRT_IO_BATCHES_H

#include "fsdprt/fsdprt.h"
#include "io/TokenFile.h"
#include <vector>

namespace fsdprt {

struct BatchOptions {
  uint64_t seed = 0;
  bool overfit = false; // step 0's samples every time
  double validationFraction = 0.1;
  double extraIds = 0; // part of random ids that are the first extra one, where the input has any
};

class Batches {
public:
  /// `inputs` of the program `step`; `tokens` may be null.
  Batches(std::vector<fsdprt_input_info> inputs, const TokenFile *tokens, uint64_t ranks, const BatchOptions &options);

  uint64_t trainTokens() const { return trainSize; }
  uint64_t validationTokens() const { return tokens ? tokens->size() - trainSize : 0; }
  /// Batches (over all ranks) that cover the validation part once; 0 when it is too short for a window.
  uint64_t validationBatches() const;

  /// The values of one rank's micro-batch of input i. Throws InputChanged. Allocates nothing unless it throws.
  const void *train(uint64_t step, uint64_t rank, uint32_t microBatch, size_t i);
  const void *validation(uint64_t batch, uint64_t rank, uint32_t microBatch, size_t i);
  size_t bytes(size_t i) const { return plans[i].buffer.size(); }
  /// Throws InputChanged when a file that batches are read from is not what it was when it was opened. Allocates nothing
  /// unless it throws.
  void expectUnchanged() const;
  /// Whether values come from a file.
  bool readFiles() const { return tokens != nullptr; }

private:
  struct Plan {
    fsdprt_input_info info;
    uint64_t samples, each; // per micro-batch; elements of a sample
    bool window;            // tokens and targets of one window
    std::vector<std::byte> buffer;
  };
  uint64_t sampleKey(uint64_t step, uint64_t sample) const;
  void fillWindow(Plan &plan, uint64_t i, uint64_t start);
  void fillRandom(Plan &plan, uint64_t i, uint64_t key);
  const void *fill(uint64_t step, uint64_t rank, uint32_t microBatch, size_t i, bool validating);

  std::vector<Plan> plans;
  std::vector<uint32_t> window; // ids of the sample that is being filled in
  const TokenFile *tokens;
  uint64_t trainSize = 0, windowLength = 0, samplesPerBatch = 0;
  BatchOptions options;
};

} // namespace fsdprt

#endif // FSDPRT_IO_BATCHES_H
