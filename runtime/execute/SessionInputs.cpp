//===- SessionInputs.cpp - Inputs of a session ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes inputs. Before an input is written, its ids are checked. Each id must be below the input's
// limit, or be one of the input's extra ids. If an id is neither, Error is thrown.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "execute/Session.h"
#include <algorithm>

using namespace fsdprt;
using ull = unsigned long long;

/// Returns true if `id` is an extra id of the input. Such an id, for example a padding id, is valid
/// although it is not below the limit.
static bool isExtraId(const fb::Input &input, int64_t id) {
  const auto *extra = input.extra_ids();
  return extra && std::find(extra->begin(), extra->end(), id) != extra->end();
}

static std::string extraIdsText(const fb::Input &input) {
  std::string text;
  for (uint32_t i = 0; input.extra_ids() && i < input.extra_ids()->size(); ++i)
    text += " or " + std::to_string(input.extra_ids()->Get(i));
  return text;
}

template <typename Id>
static void checkIds(const fb::Input &input, const void *data, size_t size) {
  const auto *ids = static_cast<const Id *>(data);
  for (size_t i = 0; i < size / sizeof(Id); ++i)
    if ((ids[i] < 0 || static_cast<uint64_t>(ids[i]) >= input.limit()) && !isExtraId(input, ids[i]))
      badInput("input '%s': expected ids in [0, %llu)%s, found %lld at element %zu",
               printable(input.name()->str()).c_str(), (ull)input.limit(),
               extraIdsText(input).c_str(), (long long)ids[i], i);
}

void Session::writeInput(uint32_t rank, uint64_t index, uint32_t microBatch, const void *data,
                         size_t size) {
  const RankGroup &on = group(rank);
  const auto *inputs = on.getLayout().inputs();
  if (!inputs || index >= inputs->size())
    badInput("expected one of %u inputs, found number %llu", inputs ? inputs->size() : 0,
             (ull)index);
  const fb::Input &input = *inputs->Get(index);
  uint64_t each = input.bytes() / input.micro_batches();
  if (microBatch >= input.micro_batches() || size != each)
    badInput("input '%s': expected %llu bytes for one of %u micro-batches, found %zu for number %u",
             printable(input.name()->str()).c_str(), (ull)each, input.micro_batches(), size,
             microBatch);
  if (input.limit() != 0) {
    switch (input.dtype()) {
    case DType::i64:
      checkIds<int64_t>(input, data, size);
      break;
    case DType::i32:
      checkIds<int32_t>(input, data, size);
      break;
    case DType::i16:
      checkIds<int16_t>(input, data, size);
      break;
    case DType::i8:
      checkIds<int8_t>(input, data, size);
      break;
    default:
      break;
    }
  }
  on.executor(checkRank(rank)).write(input.offset() + microBatch * each, data, size);
}
