//===- SessionStates.cpp - Parameters and optimizer state of a session -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Callers select an element by a parameter p and an index e in p. The selected element is element
// p.offset + e of the flat buffer of p's unit. A rank's shard is a range of the flat buffer. If p
// is split over the axis "tensor", e is an index in the whole parameter, which selects a coordinate
// on this axis and an index in the slice of this coordinate (ParamSlice.h).
//
//===----------------------------------------------------------------------===//

#include "artifact/ParamSlice.h"
#include "artifact/Snapshot.h"
#include "core/Error.h"
#include "execute/Session.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

uint64_t fsdprt::elementsOf(const fb::Param &param) {
  uint64_t elements = 1;
  for (uint32_t i = 0; param.shape() && i < param.shape()->size(); ++i)
    elements *= param.shape()->Get(i);
  return elements;
}

const fb::Param &Session::param(uint64_t index) const {
  const auto *params = artifact.manifest().params();
  if (!params || index >= params->size())
    badInput("expected one of %u parameters, found number %llu", params ? params->size() : 0,
             (ull)index);
  return *params->Get(index);
}

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
  memory.data = on.executor(checkRank(rank)).memoryOf(found);
  memory.dtype = static_cast<fsdprt_dtype>(found.dtype());
  memory.first = &on == ranks.get() ? artifact.pieceOf(found, rank) * found.elements() : 0;
  memory.elements = found.elements();
}

void Session::snapshotOf(uint32_t rank, uint64_t index, fsdprt_state_memory &memory) const {
  const fb::Program *program = artifact.program(snapshotProgram);
  if (!program)
    badInput("%s: has no memory for asynchronous saves; compile with --async-save",
             artifact.getFile().c_str());
  if (rank == FSDPRT_REFERENCE)
    badInput("the reference has no copy of its states; expected a rank below %u", ranks->ranks());
  const fb::State &found = stateOf(rank, index);
  const RankExecutor &executor = ranks->executor(checkRank(rank));
  memory.data = executor.getArena().at(snapshotOffset(*program, static_cast<uint32_t>(index)));
  memory.dtype = static_cast<fsdprt_dtype>(found.dtype());
  memory.first = artifact.pieceOf(found, rank) * found.elements();
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
    on.executor(checkRank(rank)).readState(found, first * each, count * each, into);
  else
    on.executor(checkRank(rank)).writeState(found, first * each, count * each, from);
}

const fb::State *Session::state(const RankGroup &group, uint64_t index, fb::StateRole role) const {
  const auto *states = group.getLayout().states();
  for (uint32_t i = 0; states && i < states->size(); ++i)
    if (states->Get(i)->unit() == param(index).unit() && states->Get(i)->role() == role)
      return states->Get(i);
  return nullptr;
}

static void checkElements(const fb::Param &param, uint64_t first, uint64_t count) {
  uint64_t elements = elementsOf(param);
  if (count > elements || first > elements - count)
    badInput("parameter '%s': expected elements within its %llu, found [%llu, +%llu)",
             printable(param.name()->str()).c_str(), (ull)elements, (ull)first, (ull)count);
}

namespace {
/// Elements of a flat buffer that are both in [first, first + count) and in a rank's shard.
struct Overlap {
  uint64_t begin, end; ///< indices of elements in the flat buffer
  Overlap(const RankGroup &group, const fb::State &state, uint32_t rank, uint64_t first,
          uint64_t count)
      : begin(std::max(first, group.firstElement(state, rank))),
        end(std::min(first + count, group.firstElement(state, rank) + state.elements())) {}
  /// Returns the offset of element `begin` in the rank's shard, in bytes.
  uint64_t first(const RankGroup &group, const fb::State &state, uint32_t rank) const {
    return (begin - group.firstElement(state, rank)) * sizeOf(state.dtype());
  }
  uint64_t bytes(const fb::State &state) const { return (end - begin) * sizeOf(state.dtype()); }
  std::vector<std::byte> read(const RankGroup &group, const fb::State &state, uint32_t rank) const {
    std::vector<std::byte> content(bytes(state));
    group.executor(rank).readState(state, first(group, state, rank), content.size(),
                                   content.data());
    return content;
  }
};
} // namespace

/// Returns true if `rank` has the slice with the given coordinate on the axis "tensor" of a
/// parameter. Sets `first` to the element at which the flat buffer of these slices begins in the
/// state. The reference has all slices.
static bool hasSlice(const RankGroup &on, const fb::State &state, const fb::Param &param,
                     uint32_t rank, uint64_t coordinate, uint64_t &first) {
  uint64_t slices = on.getArtifact().slicesIn(state);
  first = slices == 1 ? 0 : coordinate * (state.elements() / slices);
  return slices > 1 || !param.split() ||
         coordinate == ParamSlice::coordinateOf(on.getCommunicator().getMesh(), rank);
}

/// Reads elements [flat, flat + count) of the flat buffer of a state from the ranks with the given
/// coordinate on the axis "tensor". All processes must call readFlat(). Only the process of rank 0
/// receives the elements.
static void readFlat(const RankGroup &on, const fb::State &from, const fb::Param &param,
                     uint64_t coordinate, uint64_t flat, uint64_t count, std::byte *to) {
  uint64_t each = sizeOf(from.dtype()), first = 0;
  hasSlice(on, from, param, 0, coordinate, first);
  flat += first;
  for (uint64_t next = flat; next < flat + count;) {
    uint32_t r = 0;
    auto part = [&] { return Overlap(on, from, r, next, flat + count - next); };
    while (r < on.ranks() && (!hasSlice(on, from, param, r, coordinate, first) ||
                              part().begin != next || part().begin >= part().end))
      ++r;
    if (r == on.ranks())
      failed("parameter '%s': no rank has element %llu", printable(param.name()->str()).c_str(),
             (ull)(next - first - param.offset()));
    std::vector<std::byte> content;
    const std::byte *held = nullptr;
    if (on.isLocal(r) && on.executor(r).memoryOf(from)) {
      held = on.executor(r).memoryOf(from) + part().first(on, from, r);
    } else if (on.isLocal(r)) {
      content = part().read(on, from, r);
      held = content.data();
    }
    uint64_t end = part().end;
    on.getCommunicator().collect(r, held, (end - next) * each, to + (next - flat) * each);
    next = end;
  }
}

void Session::readParam(uint32_t rank, uint64_t index, fb::StateRole role, uint64_t first,
                        uint64_t count, void *data, size_t size) const {
  const RankGroup &on = group(rank);
  const fb::Param &which = param(index);
  checkElements(which, first, count);
  const fb::State *from = state(on, index, role);
  if (!from)
    badInput("parameter '%s' has no state '%s'", printable(which.name()->str()).c_str(),
             fb::EnumNameStateRole(role));
  uint64_t each = sizeOf(from->dtype());
  if (size != count * each)
    badInput("parameter '%s': expected a buffer of %llu bytes, found %zu",
             printable(which.name()->str()).c_str(), (ull)(count * each), size);
  const ParamSlice slice(which, artifact.getMesh());
  slice.forWhole(first, count,
                 [&](uint64_t coordinate, uint64_t held, uint64_t index, uint64_t length) {
                   readFlat(on, *from, which, coordinate, which.offset() + held, length,
                            static_cast<std::byte *>(data) + (index - first) * each);
                 });
}

/// Writes elements [flat, flat + count) of the flat buffer of a state, as far as `rank` has them.
static void writeFlat(RankGroup &on, const fb::State &to, uint32_t rank, uint64_t flat,
                      uint64_t count, const std::byte *from, DType type) {
  Overlap part(on, to, rank, flat, count);
  if (part.begin >= part.end)
    return;
  from += (part.begin - flat) * sizeOf(type);
  uint64_t place = part.first(on, to, rank);
  if (type == to.dtype()) {
    on.executor(rank).writeState(to, place, part.bytes(to), from);
    return;
  }
  std::vector<std::byte> content(part.bytes(to));
  std::byte *into = content.data();
  for (uint64_t i = part.begin; i < part.end; ++i, from += sizeOf(type), into += sizeOf(to.dtype()))
    storeElement(to.dtype(), loadElement(type, from), into);
  on.executor(rank).writeState(to, place, content.size(), content.data());
}

void Session::writeInto(RankGroup &on, const fb::State &to, const fb::Param &which, uint64_t first,
                        uint64_t count, const void *data, DType type) {
  const ParamSlice slice(which, artifact.getMesh());
  for (uint32_t r = on.firstRank(); r < on.firstRank() + on.localRanks(); ++r)
    slice.forWhole(
        first, count, [&](uint64_t coordinate, uint64_t held, uint64_t index, uint64_t length) {
          uint64_t begin = 0;
          if (hasSlice(on, to, which, r, coordinate, begin))
            writeFlat(on, to, r, begin + which.offset() + held, length,
                      static_cast<const std::byte *>(data) + (index - first) * sizeOf(type), type);
        });
}

void Session::writeParam(uint64_t index, fb::StateRole role, uint64_t first, uint64_t count,
                         const void *data, DType type) {
  const fb::Param &which = param(index);
  checkElements(which, first, count);
  if (isFloat(which.dtype()) ? !isFloat(type) : type != which.dtype())
    badInput("parameter '%s': expected values of %s, found %s",
             printable(which.name()->str()).c_str(),
             isFloat(which.dtype()) ? "a float dtype" : nameOf(which.dtype()), nameOf(type));
  bool wrote = false;
  for (RankGroup *on : {ranks.get(), reference.get()}) {
    if (!on)
      continue;
    for (fb::StateRole into : {role, fb::StateRole::master}) {
      bool alsoMaster = role == fb::StateRole::parameter && into == fb::StateRole::master;
      const fb::State *to = into == role || alsoMaster ? state(*on, index, into) : nullptr;
      if (!to)
        continue;
      writeInto(*on, *to, which, first, count, data, type);
      wrote = true;
    }
  }
  if (!wrote)
    badInput("parameter '%s' has no state '%s'", printable(which.name()->str()).c_str(),
             fb::EnumNameStateRole(role));
}

void Session::pokeShard(uint32_t rank, uint64_t index, void (*change)(void *, void *, size_t),
                        void *user) {
  const RankGroup &on = group(rank);
  const fb::State *held = state(on, index, fb::StateRole::parameter);
  if (!held)
    badInput("the parameter has no state");
  uint64_t elements = ParamSlice(param(index), on.getCommunicator().getMesh()).elements();
  Overlap part(on, *held, checkRank(rank), param(index).offset(), elements);
  if (part.begin >= part.end)
    badInput("rank %u holds no element of parameter '%s'", rank,
             printable(param(index).name()->str()).c_str());
  uint64_t first = part.first(on, *held, checkRank(rank)), size = sizeOf(held->dtype());
  std::byte element[8];
  on.executor(checkRank(rank)).readState(*held, first, size, element);
  change(user, element, size);
  on.executor(checkRank(rank)).writeState(*held, first, size, element);
}

/// Compares `piece`, a rank's shard of a state, with `all`, the complete state of the reference.
/// Compares only elements that belong to parameters, not padding. Returns true if all these
/// elements are equal. Otherwise sets `result` to the first difference. `slices` is the number of
/// slices in the state of the reference.
bool Session::compareState(uint32_t rank, const fb::State &held, const std::byte *all,
                           uint64_t slices, const std::byte *piece,
                           fsdprt_comparison &result) const {
  const auto *params = artifact.manifest().params();
  uint64_t each = sizeOf(held.dtype()), pieceBegin = ranks->firstElement(held, rank);
  uint64_t coordinate = ParamSlice::coordinateOf(artifact.getMesh(), rank);
  if (slices > 1)
    all += coordinate * artifact.piecesOf(held) / slices * held.elements() * each;
  uint64_t &counter = held.role() == fb::StateRole::parameter ? result.parameter_elements
                                                              : result.optimizer_elements;
  for (uint32_t p = 0; params && p < params->size(); ++p) {
    const fb::Param &which = *params->Get(p);
    if (which.unit() != held.unit())
      continue;
    const ParamSlice slice(which, artifact.getMesh());
    Overlap part(*ranks, held, rank, which.offset(), slice.elements());
    if (part.begin >= part.end)
      continue;
    const std::byte *a = piece + (part.begin - pieceBegin) * each;
    const std::byte *b = all + part.begin * each;
    for (uint64_t i = part.begin; i < part.end; ++i, a += each, b += each) {
      if (std::memcmp(a, b, each) == 0)
        continue;
      result.equal = 0;
      result.rank = rank;
      result.param = p;
      slice.forSlice(coordinate, i - which.offset(), 1,
                     [&](uint64_t index, uint64_t, uint64_t) { result.element = index; });
      result.role = static_cast<fsdprt_state_role>(held.role());
      result.sharded = loadElement(held.dtype(), a);
      result.unsharded = loadElement(held.dtype(), b);
      return false;
    }
    counter += part.end - part.begin;
  }
  return true;
}

const fb::State *Session::wholeOf(const fb::State &held) const {
  const auto *wholes = reference->getLayout().states();
  for (uint32_t w = 0; wholes && w < wholes->size(); ++w)
    if (wholes->Get(w)->unit() == held.unit() && wholes->Get(w)->role() == held.role() &&
        wholes->Get(w)->dtype() == held.dtype())
      return wholes->Get(w);
  return nullptr;
}

/// Compares the shards of all ranks with the reference. The process of rank 0 receives the shards
/// of the other processes one by one. Even after it has found a difference, the process of rank 0
/// receives all further shards, because the other processes send them.
void Session::compare(fsdprt_comparison &result) const {
  Communicator &communicator = ranks->getCommunicator();
  if (!reference && communicator.isRoot())
    badInput("the session was created without the reference");
  result.equal = 1;
  result.parameter_elements = result.optimizer_elements = 0;
  const auto *states = ranks->getLayout().states();
  std::vector<std::byte> buffer;
  for (uint32_t s = 0; states && s < states->size(); ++s) {
    const fb::State &held = *states->Get(s);
    const fb::State *whole = reference ? wholeOf(held) : nullptr;
    if (reference && !whole)
      badInput("%s: state %u has no counterpart of its dtype in the reference",
               artifact.getFile().c_str(), s);
    std::vector<std::byte> copied;
    const std::byte *all = whole ? reference->executor(0).memoryOf(*whole) : nullptr;
    if (whole && !all) {
      copied.resize(whole->elements() * sizeOf(whole->dtype()));
      reference->executor(0).readState(*whole, 0, copied.size(), copied.data());
      all = copied.data();
    }
    uint64_t bytes = held.elements() * sizeOf(held.dtype());
    for (uint32_t rank = 0; rank < ranks->ranks(); ++rank) {
      const std::byte *piece = nullptr;
      std::vector<std::byte> content;
      if (ranks->isLocal(rank) && !(piece = ranks->executor(rank).memoryOf(held))) {
        content.resize(bytes);
        ranks->executor(rank).readState(held, 0, bytes, content.data());
        piece = content.data();
      }
      if (communicator.processes() > 1 && (!communicator.isRoot() || !piece)) {
        buffer.resize(communicator.isRoot() ? bytes : 0);
        communicator.collect(rank, piece, bytes, buffer.data());
        piece = buffer.data();
      }
      if (reference && result.equal)
        compareState(rank, held, all, artifact.slicesIn(*whole), piece, result);
    }
  }
}
