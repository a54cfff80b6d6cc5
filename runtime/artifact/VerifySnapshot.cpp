//===- VerifySnapshot.cpp - The copy of the state for saves -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (V24) The program 'snapshot' consists of one command `copy` per state, in the order of the
//       states. No copy is on a channel. Each copy copies the whole state to the host arena. The
//       targets of the copies are disjoint. No state and no command of another program uses a byte
//       between the beginning of the first target and the end of the last target.
//
// ProgramVerifier checks that commands do not use the range that verifySnapshot() returns. For n
// states, verifySnapshot() takes O(n log n) time.
//
//===----------------------------------------------------------------------===//

#include "artifact/Arenas.h"
#include "artifact/Snapshot.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>
#include <vector>

using namespace fsdprt;
using ull = unsigned long long;

static const fb::Program *findSnapshot(const fb::Manifest &manifest) {
  for (const fb::Program *program : *manifest.programs())
    if (program->name()->str() == snapshotProgram)
      return program;
  return nullptr;
}

[[noreturn]] static void refuse(const std::string &file, uint32_t command, const std::string &why) {
  badInput("%s: program '%s', command %u: %s", file.c_str(), snapshotProgram, command, why.c_str());
}

/// Returns the target of command `index`. Throws Error unless this command copies the whole of
/// `state` to the host arena.
static const fb::Slice &verifyCopy(const std::string &file, const fb::Layout &layout,
                                   const fb::Command &command, uint32_t index,
                                   const fb::State &state) {
  const fb::Copy *copy = command.body_as_Copy();
  if (!copy || !copy->source() || !copy->target() || copy->channel() != 0)
    refuse(file, index, format("expected a copy of state %u on no channel", index));
  uint64_t bytes = state.elements() * sizeOf(state.dtype());
  for (const fb::Slice *slice : {copy->source(), copy->target()})
    if (slice->bytes() != bytes || slice->stride() != 0 || slice->piece() != 0)
      refuse(file, index,
             format("expected one range of the %llu bytes of state %u, found [%llu, +%llu)",
                    (ull)bytes, index, (ull)slice->offset(), (ull)slice->bytes()));
  if (copy->source()->offset() != state.offset())
    refuse(file, index,
           format("expected a copy of state %u at offset %llu, found one of offset %llu", index,
                  (ull)state.offset(), (ull)copy->source()->offset()));
  if (!isOnHost(layout, copy->target()->offset()))
    refuse(file, index,
           format("expected a target in the host's arena, found offset %llu",
                  (ull)copy->target()->offset()));
  return *copy->target();
}

SnapshotRange fsdprt::verifySnapshot(const std::string &file, const fb::Manifest &manifest,
                                     Rules rules, WorkLimit &work) { // (V24)
  const fb::Program *program = findSnapshot(manifest);
  if (!program || rules == Rules::form)
    return {};
  const fb::Layout &layout = *manifest.layouts()->Get(program->layout());
  uint32_t states = layout.states() ? layout.states()->size() : 0;
  uint32_t commands = program->commands() ? program->commands()->size() : 0;
  if (states == 0 || commands != states)
    badInput("%s: program '%s': expected a copy of each of %u states, found %u commands",
             file.c_str(), snapshotProgram, states, commands);
  work.spend(3 * uint64_t(states));
  std::vector<const fb::Slice *> targets;
  for (uint32_t i = 0; i < states; ++i)
    targets.push_back(
        &verifyCopy(file, layout, *program->commands()->Get(i), i, *layout.states()->Get(i)));
  std::sort(targets.begin(), targets.end(),
            [](const fb::Slice *a, const fb::Slice *b) { return a->offset() < b->offset(); });
  for (uint32_t i = 1; i < states; ++i)
    if (targets[i]->offset() - targets[i - 1]->offset() < targets[i - 1]->bytes())
      badInput("%s: program '%s': two copies overlap at offset %llu", file.c_str(), snapshotProgram,
               (ull)targets[i]->offset());
  SnapshotRange range{program->layout(), targets.front()->offset(),
                      targets.back()->offset() + targets.back()->bytes()};
  for (uint32_t i = 0; i < states; ++i) {
    const fb::State &state = *layout.states()->Get(i);
    uint64_t end = state.offset() + state.elements() * sizeOf(state.dtype());
    if (state.offset() < range.end && range.begin < end)
      badInput("%s: program '%s': state %u overlaps the copies", file.c_str(), snapshotProgram, i);
  }
  return range;
}

uint64_t fsdprt::snapshotBytes(const fb::Manifest &manifest) {
  const fb::Program *program = findSnapshot(manifest);
  uint64_t bytes = 0;
  for (uint32_t i = 0; program && i < program->commands()->size(); ++i)
    bytes += program->commands()->Get(i)->body_as_Copy()->target()->bytes();
  return bytes;
}
