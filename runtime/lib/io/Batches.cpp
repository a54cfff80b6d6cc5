//===- Batches.cpp - Which samples a step sees ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See the header. A sample's key is a 64-bit number from Philox: it gives the
// window's start, or seeds the sample's own stream of random values.
//
//===----------------------------------------------------------------------===//

#include "io/Batches.h"
#include "core/DType.h"
#include "core/Error.h"
#include "execute/Initialise.h"
#include "execute/Philox.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

static void storeId(fsdprt_dtype type, uint64_t id, std::byte *to) {
  std::memcpy(to, &id, sizeOf(static_cast<DType>(type)));
}

Batches::Batches(std::vector<fsdprt_input_info> inputs, const TokenFile *tokens, uint64_t ranks,
                 const BatchOptions &options)
    : tokens(tokens), options(options) {
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
    plans.push_back({info, elements / std::max<uint64_t>(each, 1), each, false, {}});
    plans.back().buffer.resize(info.bytes / info.micro_batches);
  }
  for (Plan &plan : plans) {
    uint64_t elements = plan.samples * plan.each;
    bool ids = !isFloat(static_cast<DType>(plan.info.dtype)) && plan.info.role != FSDPRT_OTHER;
    plan.window = ids && windowLength != 0 && elements == tokenElements;
    if (plan.window) {
      plan.each = windowLength;
      plan.samples = elements / windowLength;
    } else if (tokens && plan.info.role != FSDPRT_OTHER) {
      badInput("input '%s' has another shape than the tokens; it cannot be taken from a file of tokens",
               plan.info.name);
    }
  }
  if (!tokens)
    return;
  if (windowLength == 0)
    badInput("the model takes no tokens; leave --data and --text out");
  if (!(options.validationFraction >= 0 && options.validationFraction < 1)) // not a number included
    badInput("expected a part of the tokens for validation, at least 0 and below 1, found %g",
             options.validationFraction);
  window.resize(windowLength);
  uint64_t validation = static_cast<uint64_t>(static_cast<double>(tokens->size()) * options.validationFraction);
  trainSize = tokens->size() - (validation > windowLength ? validation : 0);
  if (trainSize < windowLength + 1)
    badInput("expected at least %llu tokens for one sample of %llu and its targets, found %llu to train on",
             (ull)windowLength + 1, (ull)windowLength, (ull)trainSize);
}

void Batches::expectUnchanged() const {
  if (tokens)
    tokens->expectUnchanged();
}

uint64_t Batches::validationBatches() const {
  uint64_t size = validationTokens();
  if (size < windowLength + 1)
    return 0;
  return ((size - 1) / windowLength + samplesPerBatch - 1) / samplesPerBatch;
}

uint64_t Batches::sampleKey(uint64_t step, uint64_t sample) const {
  return firstWord(philox(options.seed, streamOf("samples of step") + step, sample));
}

void Batches::fillWindow(Plan &plan, uint64_t i, uint64_t start) {
  uint64_t size = sizeOf(static_cast<DType>(plan.info.dtype)), shift = plan.info.role == FSDPRT_TARGETS;
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

const void *Batches::fill(uint64_t step, uint64_t rank, uint32_t microBatch, size_t index, bool validating) {
  Plan &plan = plans[index];
  uint64_t first = (rank * plan.info.micro_batches + microBatch) * plan.samples;
  for (uint64_t i = 0; i < plan.samples; ++i) {
    uint64_t key = sampleKey(step, first + i);
    if (!tokens || !plan.window) {
      fillRandom(plan, i, key);
    } else if (validating) {
      uint64_t windows = (validationTokens() - 1) / windowLength;
      fillWindow(plan, i, trainSize + (step * samplesPerBatch + first + i) % windows * windowLength);
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
