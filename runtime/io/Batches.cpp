//===- Batches.cpp - Samples of training steps ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes a random 64-bit key for each sample by Philox. The key selects the window or the row
// that becomes the sample. If the input has no file, the key is the seed of the sample's random
// values.
//
//===----------------------------------------------------------------------===//

#include "io/Batches.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Initialise.h"
#include "core/Philox.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

static void storeId(fsdprt_dtype type, uint64_t id, std::byte *to) {
  std::memcpy(to, &id, sizeOf(static_cast<DType>(type)));
}

/// Returns the shape of one micro-batch of an input.
static std::vector<uint64_t> shapeOf(const fsdprt_input_info &info) {
  std::vector<uint64_t> shape(info.shape, info.shape + info.rank);
  if (info.micro_batches > 1 && !shape.empty())
    shape.erase(shape.begin());
  return shape;
}

static uint64_t product(const std::vector<uint64_t> &shape) {
  uint64_t elements = 1;
  for (uint64_t dim : shape)
    elements *= dim;
  return elements;
}

/// An input of tokens or targets with one dimension is divided into windows. The length of a window
/// is the last dimension of the input with the tokens. In any other input, the leading dimension
/// counts the samples.
SampleShape fsdprt::sampleShapeOf(const std::vector<fsdprt_input_info> &inputs, size_t index) {
  std::vector<uint64_t> shape = shapeOf(inputs[index]);
  if (shape.empty())
    return {1, {}};
  for (const fsdprt_input_info &info : inputs) {
    std::vector<uint64_t> tokens = shapeOf(info);
    bool isWindow = info.role == FSDPRT_TOKENS && inputs[index].role != FSDPRT_OTHER &&
                    shape.size() == 1 && !tokens.empty() && tokens.back() &&
                    product(tokens) == shape[0];
    if (isWindow)
      return {shape[0] / tokens.back(), {tokens.back()}};
  }
  return {shape[0], {shape.begin() + 1, shape.end()}};
}

Batches::Batches(std::vector<fsdprt_input_info> inputs, const TokenFile *tokens, uint64_t ranks,
                 const BatchOptions &options, std::vector<const SampleFile *> files)
    : tokens(tokens), ranks(ranks), options(options) {
  if (!(options.validationFraction >= 0 && options.validationFraction < 1)) // also rejects NaN
    badInput("validation fraction: expected a number of at least 0 and below 1, found %g",
             options.validationFraction);
  files.resize(inputs.size());
  uint64_t tokenElements = 0;
  for (const fsdprt_input_info &info : inputs) {
    bool leading = info.micro_batches > 1;
    uint64_t elements = info.bytes / info.micro_batches / sizeOf(static_cast<DType>(info.dtype));
    uint64_t each = elements;
    if (info.role == FSDPRT_OTHER && info.rank > leading)
      each = elements / std::max<uint64_t>(info.shape[leading], 1);
    if (info.role == FSDPRT_TOKENS && info.rank > leading) {
      each = info.shape[info.rank - 1];
      windowLength = each;
      tokenElements = elements;
      samplesPerBatch = elements / std::max<uint64_t>(each, 1) * info.micro_batches * ranks;
    }
    plans.push_back({info,
                     elements / std::max<uint64_t>(each, 1),
                     each,
                     false,
                     files[plans.size()],
                     false,
                     {}});
    plans.back().buffer.resize(info.bytes / info.micro_batches);
  }
  planWindows(tokenElements);
  planRows(inputs, files, ranks);
  if (tokens)
    splitTokens();
}

/// Determines which inputs contain windows of the token file.
void Batches::planWindows(uint64_t tokenElements) {
  for (Plan &plan : plans) {
    uint64_t elements = plan.samples * plan.each;
    bool ids = !isFloat(static_cast<DType>(plan.info.dtype)) && plan.info.role != FSDPRT_OTHER;
    plan.window = ids && windowLength != 0 && elements == tokenElements && !plan.file;
    if (plan.window) {
      plan.each = windowLength;
      plan.samples = elements / windowLength;
    } else if (tokens && plan.info.role != FSDPRT_OTHER && !plan.file) {
      badInput("input '%s' has another shape than the tokens; it cannot be read from a token file",
               plan.info.name);
    }
  }
}

/// Divides each input that has a file of rows into samples. Throws Error unless all these files
/// have the same number of rows.
void Batches::planRows(const std::vector<fsdprt_input_info> &inputs,
                       const std::vector<const SampleFile *> &files, uint64_t ranks) {
  uint64_t most = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (files[i]) {
      SampleShape shape = sampleShapeOf(inputs, i);
      plans[i].samples = shape.samples;
      plans[i].each = product(shape.row);
    }
    if (files[i] || (tokens && plans[i].window))
      most = std::max(most, plans[i].samples);
  }
  const Plan *first = nullptr;
  for (Plan &plan : plans) {
    if (!plan.file)
      continue;
    plan.fixed = plan.samples != most;
    if (plan.fixed && plan.file->getRows() != plan.samples)
      badInput(
          "%s: input '%s' has leading dimension %llu, other inputs have %llu samples, so it is "
          "the same at every step: expected a file of %llu rows, found %llu",
          plan.file->getPath().c_str(), plan.info.name, (ull)plan.samples, (ull)most,
          (ull)plan.samples, (ull)plan.file->getRows());
    if (plan.fixed)
      continue;
    if (first && plan.file->getRows() != rows)
      badInput("%s: expected %llu samples for input '%s', as many as %s has for '%s', found %llu; "
               "sample i of all files belongs together",
               plan.file->getPath().c_str(), (ull)rows, plan.info.name,
               first->file->getPath().c_str(), first->info.name, (ull)plan.file->getRows());
    if (!first)
      rows = plan.file->getRows();
    first = first ? first : &plan;
    rowsPerBatch = plan.samples * plan.info.micro_batches * ranks;
  }
  rowsToTrain =
      rows - static_cast<uint64_t>(static_cast<double>(rows) * options.validationFraction);
}

void Batches::splitTokens() {
  if (windowLength == 0)
    badInput("the model has no input 'tokens', which --data and --text feed; omit these options "
             "and feed the inputs with --input NAME=FILE, or compile with --batch=INDEX=tokens to "
             "name one of them 'tokens'");
  window.resize(windowLength);
  uint64_t validation =
      static_cast<uint64_t>(static_cast<double>(tokens->size()) * options.validationFraction);
  trainSize = tokens->size() - (validation > windowLength ? validation : 0);
  if (trainSize < windowLength + 1)
    badInput("expected at least %llu tokens for one sample of %llu and its targets, found %llu in "
             "the training part",
             (ull)windowLength + 1, (ull)windowLength, (ull)trainSize);
}

void Batches::expectUnchanged() const {
  if (tokens)
    tokens->expectUnchanged();
  for (const Plan &plan : plans)
    if (plan.file)
      plan.file->expectUnchanged();
}

uint64_t Batches::validationBatches() const {
  uint64_t size = validationTokens(), most = 0;
  if (tokens && size < windowLength + 1)
    return 0;
  if (tokens)
    most = ((size - 1) / windowLength + samplesPerBatch - 1) / samplesPerBatch;
  if (rows && validationRows() == 0)
    return 0;
  if (rows)
    most = std::max(most, (validationRows() + rowsPerBatch - 1) / rowsPerBatch);
  return most;
}

uint64_t Batches::sampleKey(uint64_t step, uint64_t sample) const {
  return firstWord(philox(options.seed, streamOf("samples of step") + step, sample));
}

void Batches::fillWindow(Plan &plan, uint64_t i, uint64_t start) {
  uint64_t size = sizeOf(static_cast<DType>(plan.info.dtype)),
           shift = plan.info.role == FSDPRT_TARGETS;
  std::byte *to = plan.buffer.data() + i * plan.each * size;
  tokens->read(start + shift, plan.each, window.data());
  for (uint64_t j = 0; j < plan.each; ++j, to += size)
    storeId(plan.info.dtype, window[j], to);
}

void Batches::fillRandom(Plan &plan, uint64_t i, uint64_t key) {
  DType type = static_cast<DType>(plan.info.dtype);
  uint64_t size = sizeOf(type), shift = plan.window && plan.info.role == FSDPRT_TARGETS;
  std::byte *to = plan.buffer.data() + i * plan.each * size;
  uint64_t stream = streamOf(plan.window ? "tokens" : plan.info.name);
  if (isFloat(type))
    return initialValues({fb::InitKind::normal, 0, 1}, key, stream, 0, plan.each, type, to);
  for (uint64_t j = 0; j < plan.each; ++j, to += size) {
    PhiloxBlock block = philox(key, stream, j + shift);
    if (plan.info.num_extra_ids && unitInterval(secondWord(block)) < options.extraIds)
      storeId(plan.info.dtype, static_cast<uint64_t>(plan.info.extra_ids[0]), to);
    else
      storeId(plan.info.dtype, plan.info.limit ? below(plan.info.limit, firstWord(block)) : 0, to);
  }
}

/// Returns the index of the row that becomes sample `i` of a micro-batch. The first sample of this
/// micro-batch is sample number `first` of the step.
uint64_t Batches::rowOf(const Plan &plan, uint64_t step, uint64_t first, uint64_t i, uint64_t key,
                        bool validating) const {
  if (plan.fixed)
    return i;
  if (validating)
    return rowsToTrain + (step * rowsPerBatch + first + i) % validationRows();
  return below(rowsToTrain, key);
}

const void *Batches::fill(uint64_t step, uint64_t rank, uint32_t microBatch, size_t index,
                          bool validating) {
  Plan &plan = plans[index];
  uint64_t first = (rank * plan.info.micro_batches + microBatch) * plan.samples;
  for (uint64_t i = 0; i < plan.samples; ++i) {
    uint64_t key = sampleKey(step, first + i);
    if (plan.file) {
      uint64_t size = plan.each * sizeOf(static_cast<DType>(plan.info.dtype));
      plan.file->copyRow(rowOf(plan, step, first, i, key, validating),
                         plan.buffer.data() + i * size);
    } else if (!tokens || !plan.window) {
      fillRandom(plan, i, key);
    } else if (validating) {
      uint64_t windows = (validationTokens() - 1) / windowLength;
      fillWindow(plan, i,
                 trainSize + (step * samplesPerBatch + first + i) % windows * windowLength);
    } else {
      fillWindow(plan, i, below(trainSize - windowLength, key));
    }
  }
  return plan.buffer.data();
}

const void *Batches::train(uint64_t step, uint64_t rank, uint32_t microBatch, size_t i) {
  return fill(options.overfit ? 0 : step, rank, microBatch, i, false);
}

const void *Batches::validation(uint64_t batch, uint64_t rank, uint32_t microBatch, size_t i) {
  return fill(batch, rank, microBatch, i, true);
}
