//===- Accesses.cpp - The ranges that a command accesses --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A launch reads the bindings that the kernel does not write, and it reads and writes the other
// bindings. A written binding may be missing in the list `reads` of the kernel. The launch then
// overwrites this binding completely, and does not read it. A launch also writes its scratch
// memory, whose contents are undefined after the launch. In a collective, the rank and its peers
// read the source, and the rank writes the target. A copy reads its source and writes its target. A
// fill writes its target. An initialise command writes that part of the parameter that is in the
// rank's piece of the state.
//
//===----------------------------------------------------------------------===//

#include "null/Accesses.h"
#include "artifact/ParamSlice.h"
#include "artifact/Verifier.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t bindingAlignment = 64;

void Accesses::place(const fb::Slice &slice, uint64_t iteration, uint64_t alignment, Access access,
                     std::vector<Access> &into) const {
  uint64_t sweep, skip, begin = slice.offset(),
                        number = slice.piece() ? mesh.pieceOf(slice.split(), rank) : 0;
  bool fits = !__builtin_mul_overflow(slice.stride(), iteration, &sweep) &&
              !__builtin_mul_overflow(slice.piece(), number, &skip) &&
              !__builtin_add_overflow(begin, sweep, &begin) &&
              !__builtin_add_overflow(begin, skip, &begin);
  access.inArena = fits && liesInArena(layout, slice.offset(), begin, slice.bytes()) &&
                   liesInArena(layout, begin, begin, slice.bytes());
  access.begin = begin;
  access.end = access.inArena ? begin + slice.bytes() : begin;
  access.alignment = alignment;
  if (!access.inArena)
    access.asked = format("[%llu, +%llu)", (ull)begin, (ull)slice.bytes());
  into.push_back(std::move(access));
}

static Access reading(Access::Role role, uint32_t index = 0) {
  Access access(role, index);
  access.reads = access.needsValue = true;
  return access;
}

static Access writing(Access::Role role, uint32_t index = 0) {
  Access access(role, index);
  access.writes = true;
  return access;
}

void Accesses::ofLaunch(const fb::Launch &launch, uint64_t iteration,
                        std::vector<Access> &into) const {
  const fb::Kernel &kernel = *manifest.kernels()->Get(launch.kernel());
  for (uint32_t i = 0; launch.bindings() && i < launch.bindings()->size(); ++i) {
    bool known = kernel.writes() && kernel.writes()->size() != 0,
         writes = !known || kernel.writes()->Get(i) != 0;
    bool saysReads = kernel.reads() && kernel.reads()->size() != 0;
    Access access = writes ? writing(Access::Role::binding, i) : reading(Access::Role::binding, i);
    access.reads = !writes || !saysReads || kernel.reads()->Get(i) != 0;
    access.needsValue = !writes || (saysReads && access.reads);
    place(*launch.bindings()->Get(i), iteration, bindingAlignment, access, into);
  }
  const fb::Slice *workspace = layout.workspace();
  uint64_t workers = uint64_t(layout.workers()) * layout.worker_bytes();
  for (auto [offset, bytes] :
       {std::pair(uint64_t(0), kernel.shared_bytes()),
        std::pair(layout.shared_bytes(), kernel.worker_bytes() ? workers : 0)}) {
    if (bytes == 0 || !workspace)
      continue;
    Access access = writing(Access::Role::scratch);
    access.leavesValue = false;
    place(fb::Slice(workspace->offset() + offset, bytes, 0, 0, 0), 0,
          manifest.gpu() ? gpuScratchAlignment : bindingAlignment, access, into);
  }
}

void Accesses::ofInitialise(const fb::Initialise &initialise, std::vector<Access> &into) const {
  const fb::State &state = *layout.states()->Get(initialise.state());
  const fb::Param &param = *manifest.params()->Get(initialise.param());
  uint64_t elements = ParamSlice(param, mesh).elements(), size = sizeOf(state.dtype());
  uint64_t held = mesh.pieceOf(static_cast<uint64_t>(state.split()), rank) * state.elements();
  uint64_t begin = std::max(param.offset(), held),
           end = std::min(param.offset() + elements, held + state.elements());
  if (begin < end)
    place(fb::Slice(state.offset() + (begin - held) * size, (end - begin) * size, 0, 0, 0), 0, 1,
          writing(Access::Role::state), into);
}

void Accesses::of(const fb::Command &command, uint64_t iteration, std::vector<Access> &into) const {
  into.clear();
  if (const fb::Launch *launch = command.body_as_Launch())
    return ofLaunch(*launch, iteration, into);
  if (const fb::Initialise *initialise = command.body_as_Initialise())
    return ofInitialise(*initialise, into);
  if (const fb::Fill *fill = command.body_as_Fill())
    return place(*fill->target(), iteration, 1, writing(Access::Role::target), into);
  if (const fb::Copy *copy = command.body_as_Copy()) {
    place(*copy->source(), iteration, 1, reading(Access::Role::source), into);
    place(*copy->target(), iteration, 1, writing(Access::Role::target), into);
  } else if (const fb::Collective *collective = command.body_as_Collective()) {
    uint64_t alignment = sizeOf(collective->dtype());
    Access source = reading(Access::Role::source);
    source.needsValue =
        // A broadcast reads only the root's source.
        collective->kind() != fb::CollectiveKind::broadcast;
    place(*collective->source(), iteration, alignment, source, into);
    place(*collective->target(), iteration, alignment, writing(Access::Role::target), into);
  }
}

std::optional<std::pair<size_t, size_t>>
Accesses::findClash(const fb::Command &command, const std::vector<Access> &accesses) const {
  bool isLaunch = command.body_as_Launch() != nullptr;
  for (size_t i = 0; i < accesses.size(); ++i)
    for (size_t j = 0; j < accesses.size(); ++j) {
      const Access &a = accesses[i], &b = accesses[j];
      bool meets = i != j && a.writes && a.begin < b.end && b.begin < a.end;
      if (meets && (isLaunch || !isInPlace(command, b, a)))
        return std::pair(i, j);
    }
  return std::nullopt;
}

bool Accesses::isInPlace(const fb::Command &command, const Access &source,
                         const Access &target) const {
  const fb::Collective *collective = command.body_as_Collective();
  if (source.begin == target.begin && source.end == target.end)
    return !collective || collective->kind() != fb::CollectiveKind::shift;
  if (!collective || collective->kind() != fb::CollectiveKind::all_gather)
    return false;
  std::vector<uint32_t> axes;
  if (collective->axes())
    axes.assign(collective->axes()->begin(), collective->axes()->end());
  std::vector<uint32_t> members = mesh.group(rank, axes);
  auto place =
      static_cast<uint64_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  return source.begin == target.begin + place * (source.end - source.begin);
}

Accesses::Memory Accesses::memoryOf(const Access &access) const {
  return isInFile(layout, access.begin)   ? Memory::file
         : isOnHost(layout, access.begin) ? Memory::host
                                          : Memory::device;
}

std::string Accesses::nameOf(const Access &access) {
  switch (access.role) {
  case Access::Role::binding:
    return format("binding %u", access.index);
  case Access::Role::source:
    return "the source";
  case Access::Role::target:
    return "the target";
  case Access::Role::scratch:
    return "scratch";
  case Access::Role::state:
    return "the state";
  case Access::Role::host:
    return "the host";
  }
  return "";
}

std::string fsdprt::describe(const fb::Manifest &manifest, const fb::Command &command) {
  std::string label = command.label() ? " '" + printable(command.label()->str()) + "'" : "";
  auto onChannel = [](uint32_t channel) {
    return channel ? format(" on channel %u", channel) : std::string();
  };
  if (const fb::Launch *launch = command.body_as_Launch())
    return "launch" +
           (label.empty()
                ? " '" + printable(manifest.kernels()->Get(launch->kernel())->name()->str()) + "'"
                : label);
  if (const fb::Collective *body = command.body_as_Collective())
    return std::string(fb::EnumNameCollectiveKind(body->kind())) + label +
           format(", collective %u", body->id()) + onChannel(body->channel());
  if (const fb::Copy *body = command.body_as_Copy())
    return "copy" + label + (body->channel() ? format(", copy %u", body->id()) : "") +
           onChannel(body->channel());
  if (const fb::Wait *body = command.body_as_Wait())
    return format("wait for %u", body->id());
  return (command.body_as_Fill()         ? "fill"
          : command.body_as_Initialise() ? "initialise"
                                         : "loop") +
         label;
}
