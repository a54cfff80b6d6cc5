//===- SessionStates.cpp - Where a rank's states lie ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The pieces that saves hold: by the number of a state in the ranks' layout, or its counterpart in
// the reference's.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "execute/Session.h"

using namespace fsdprt;
using ull = unsigned long long;

const fb::State &Session::stateOf(uint32_t rank, uint64_t index) const {
  const RankGroup &on = group(rank);
  const auto *states = ranks->getLayout().states(), *own = on.getLayout().states();
  if (!states || index >= states->size())
    badInput("expected one of %u states, found number %llu", states ? states->size() : 0,
             (ull)index);
  const fb::State &held = *states->Get(static_cast<uint32_t>(index)), *found = &held;
  if (&on != ranks.get()) {
    found = nullptr;
    for (uint32_t i = 0; own && i < own->size(); ++i)
      if (own->Get(i)->unit() == held.unit() && own->Get(i)->role() == held.role())
        found = own->Get(i);
    if (!found || found->dtype() != held.dtype())
      badInput("%s: state %llu has no counterpart of its dtype in the reference",
               artifact.getFile().c_str(), (ull)index);
  }
  return *found;
}

void Session::memoryOf(uint32_t rank, uint64_t index, fsdprt_state_memory &memory) const {
  const RankGroup &on = group(rank);
  const fb::State &found = stateOf(rank, index);
  memory.data = on.memoryOf(checkRank(rank), found);
  memory.dtype = static_cast<fsdprt_dtype>(found.dtype());
  memory.first = on.firstElement(found, checkRank(rank));
  memory.elements = found.elements();
}

void Session::moveState(uint32_t rank, uint64_t index, uint64_t first, uint64_t count, void *into,
                        const void *from) const {
  const RankGroup &on = group(rank);
  const fb::State &found = stateOf(rank, index);
  uint64_t each = sizeOf(found.dtype());
  if (count > found.elements() || first > found.elements() - count)
    badInput("state %llu: expected elements within the %llu of rank %u, found [%llu, +%llu)",
             (ull)index, (ull)found.elements(), rank, (ull)first, (ull)count);
  if (into)
    on.readState(checkRank(rank), found, first * each, count * each, into);
  else
    on.writeState(checkRank(rank), found, first * each, count * each, from);
}
