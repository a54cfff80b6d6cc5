//===- DecodedProgram.cpp - A program as a flat list ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/DecodedProgram.h"
#include "artifact/Arenas.h"
#include "artifact/Launches.h"
#include "artifact/Snapshot.h"
#include "core/DType.h"
#include <algorithm>

using namespace fsdprt;

/// Returns the highest end offset of a slice over all ranks and all iterations of its loop. Returns
/// 0 if the slice is in the file.
static uint64_t endOf(const fb::Layout &layout, const fb::Slice *slice, uint64_t iterations,
                      const Mesh &mesh) {
  if (isInFile(layout, slice->offset()))
    return 0;
  uint64_t last = slice->piece() ? slice->piece() * (mesh.pieces(slice->split()) - 1) : 0;
  return slice->offset() + last + slice->stride() * (iterations - 1) + slice->bytes();
}

uint64_t fsdprt::residentEnd(const fb::Layout &layout, const Mesh &mesh) {
  uint64_t end = endOf(layout, layout.block(), 1, mesh);
  for (const fb::Slice *slice : {layout.rank(), layout.workspace()})
    if (slice && slice->bytes())
      end = std::max(end, endOf(layout, slice, 1, mesh));
  for (uint32_t i = 0; layout.states() && i < layout.states()->size(); ++i) {
    const fb::State &state = *layout.states()->Get(i);
    if (!isInFile(layout, state.offset()))
      end = std::max(end, state.offset() + state.elements() * sizeOf(state.dtype()));
  }
  for (uint32_t i = 0; layout.inputs() && i < layout.inputs()->size(); ++i)
    end = std::max(end, layout.inputs()->Get(i)->offset() + layout.inputs()->Get(i)->bytes());
  return end;
}

size_t fsdprt::mostBindings(const Artifact &artifact) {
  size_t most = 0;
  const auto *kernels = artifact.manifest().kernels();
  for (uint32_t i = 0; kernels && i < kernels->size(); ++i)
    most = std::max<size_t>(
        most, kernels->Get(i)->binding_bytes() ? kernels->Get(i)->binding_bytes()->size() : 0);
  // In addition to the bindings, a launch passes the address of the scratch memory that all threads
  // of a kernel share.
  return most + 1;
}

DecodedProgram ProgramDecoder::decode(const fb::Program &program) {
  std::unordered_map<uint32_t, StartedTransfer> started;
  uint32_t number = 0;
  DecodedProgram into;
  std::string name = program.name()->str();
  keepsAll = onlyKinds.empty() || name == "init" || name == snapshotProgram;
  decodeBlock(program.commands(), into, started, number, 1);
  return into;
}

/// Returns true if `command` is a loop, or a launch of a kernel whose kind is in `onlyKinds`.
bool ProgramDecoder::isWanted(const fb::Command &command) const {
  if (command.body_as_Loop())
    return true;
  const fb::Launch *launch = command.body_as_Launch();
  const auto *kind =
      launch ? artifact.manifest().kernels()->Get(launch->kernel())->kind() : nullptr;
  return kind && std::count(onlyKinds.begin(), onlyKinds.end(), kind->str()) != 0;
}

/// Returns the highest end offset among the ranges that a command reads or writes.
static uint64_t endOf(const fb::Layout &layout, const fb::Command &command, uint64_t iterations,
                      const Mesh &mesh) {
  uint64_t end = 0;
  auto endOf = [&](const fb::Slice *slice, uint64_t, const Mesh &) {
    return ::endOf(layout, slice, iterations, mesh);
  };
  if (const fb::Launch *launch = command.body_as_Launch())
    for (uint32_t i = 0; launch->bindings() && i < launch->bindings()->size(); ++i)
      end = std::max(end, endOf(launch->bindings()->Get(i), iterations, mesh));
  else if (const fb::Collective *collective = command.body_as_Collective())
    end = std::max(endOf(collective->source(), iterations, mesh),
                   endOf(collective->target(), iterations, mesh));
  else if (const fb::Copy *copy = command.body_as_Copy())
    end =
        std::max(endOf(copy->source(), iterations, mesh), endOf(copy->target(), iterations, mesh));
  else if (const fb::Fill *fill = command.body_as_Fill())
    end = endOf(fill->target(), iterations, mesh);
  return end;
}

void ProgramDecoder::decodeBlock(
    const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *commands, DecodedProgram &into,
    std::unordered_map<uint32_t, StartedTransfer> &started, uint32_t &number, uint64_t iterations) {
  for (uint32_t i = 0; commands && i < commands->size(); ++i) {
    const fb::Command &command = *commands->Get(i);
    const char *label = command.label() ? command.label()->c_str() : "";
    if (!keepsAll && !isWanted(command)) {
      ++number;
      continue;
    }
    if (i > 0 && !into.instructions.empty() &&
        into.instructions.back().body == commands->Get(i - 1)->body())
      into.instructions.back().joinsNext = areOneLaunch(*commands->Get(i - 1), command);
    into.instructions.push_back({command.body_type(), command.body(), label, number++});
    into.end = std::max(into.end, endOf(layout, command, iterations, mesh));
    decodeChannel(command, into, started);
    if (const fb::Loop *loop = command.body_as_Loop()) {
      size_t at = into.instructions.size() - 1;
      decodeBlock(loop->body(), into, started, number, loop->count());
      into.instructions[at].length = static_cast<uint32_t>(into.instructions.size() - at - 1);
    }
  }
}

/// If `command` starts or awaits a transfer, stores the index of the transfer in the last
/// instruction of `into`, which is the decoded form of `command`.
void ProgramDecoder::decodeChannel(const fb::Command &command, DecodedProgram &into,
                                   std::unordered_map<uint32_t, StartedTransfer> &started) {
  Instruction &instruction = into.instructions.back();
  if (const fb::Collective *collective = command.body_as_Collective()) {
    instruction.collective = addCollective(*collective, instruction.label);
    started[collective->id()] = {instruction.collective, TransferKind::collectives};
    into.hasChannels |= collective->channel() != 0;
  } else if (const fb::Copy *copy = command.body_as_Copy(); copy && copy->channel() != 0) {
    instruction.collective = copies++;
    bool isFile =
        isInFile(layout, copy->source()->offset()) || isInFile(layout, copy->target()->offset());
    started[copy->id()] = {instruction.collective,
                           isFile ? TransferKind::file : TransferKind::copies};
    instruction.transferKind = started[copy->id()].transferKind;
  } else if (const fb::Wait *wait = command.body_as_Wait()) {
    StartedTransfer start = started.at(wait->id());
    instruction.collective = start.number;
    instruction.transferKind = start.transferKind;
  }
}

uint32_t ProgramDecoder::addCollective(const fb::Collective &collective, const char *label) {
  std::vector<uint32_t> axes;
  if (collective.axes())
    axes.assign(collective.axes()->begin(), collective.axes()->end());
  const auto *units = artifact.manifest().units();
  bool known =
      collective.unit() >= 0 && units && static_cast<uint32_t>(collective.unit()) < units->size();
  std::string unit =
      known ? units->Get(static_cast<uint32_t>(collective.unit()))->name()->str() : "";
  return communicator.add({collective.kind(), collective.reduction(), collective.dtype(),
                           collective.count(), collective.root(), std::move(axes), collective.id(),
                           label, std::move(unit),
                           collective.source()->piece() || collective.target()->piece()});
}
