//===- LiveBuffers.cpp - Live buffers along a program -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The key of a buffer in `live` is the offset at which the buffer begins. Live buffers do not
// overlap, so that one search in `live` finds the only buffer that can cover a range.
//
//===----------------------------------------------------------------------===//

#include "null/LiveBuffers.h"
#include "artifact/Arenas.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>

using namespace fsdprt;
using ull = unsigned long long;

LiveBuffers::LiveBuffers(const fb::Manifest &manifest, const fb::Layout &layout)
    : manifest(manifest), layout(layout) {
  if (areKnown())
    for (const fb::Buffer *buffer : *layout.buffers())
      buffers.push_back({buffer->name() ? printable(buffer->name()->str()) : "", buffer->offset(),
                         buffer->offset() + buffer->bytes(), buffer->program(), buffer->first(),
                         buffer->last()});
  addResidents();
}

/// Adds a permanent buffer for each state, each input, the step block, the rank block and the
/// workspace, unless a permanent buffer of the layout already contains the range.
void LiveBuffers::addResidents() {
  auto add = [&](std::string name, uint64_t begin, uint64_t bytes) {
    bool isKnown = std::any_of(buffers.begin(), buffers.end(), [&](const Buffer &known) {
      return known.isAlways() && known.begin <= begin && begin + bytes <= known.end;
    });
    if (!isKnown && bytes)
      buffers.push_back({std::move(name), begin, begin + bytes, UINT32_MAX, 0, UINT32_MAX});
  };
  for (uint32_t i = 0; layout.states() && i < layout.states()->size(); ++i) {
    const fb::State &state = *layout.states()->Get(i);
    std::string unit = printable(manifest.units()->Get(state.unit())->name()->str());
    add(unit + " " + fb::EnumNameStateRole(state.role()), state.offset(),
        state.elements() * sizeOf(state.dtype()));
  }
  for (uint32_t i = 0; layout.inputs() && i < layout.inputs()->size(); ++i)
    add(printable(layout.inputs()->Get(i)->name()->str()), layout.inputs()->Get(i)->offset(),
        layout.inputs()->Get(i)->bytes());
  add("step block", layout.block()->offset(), layout.block()->bytes());
  if (layout.rank())
    add("rank block", layout.rank()->offset(), layout.rank()->bytes());
  if (layout.workspace())
    add("workspace", layout.workspace()->offset(), layout.workspace()->bytes());
}

std::string LiveBuffers::describe(const Buffer &buffer) const {
  std::string when = "always";
  if (!buffer.isAlways())
    when = format("at commands %u to %u of '%s'", buffer.first, buffer.last,
                  buffer.program < manifest.programs()->size()
                      ? printable(manifest.programs()->Get(buffer.program)->name()->str()).c_str()
                      : "no program");
  return format("'%s' at [%llu, +%llu), which lives %s", buffer.name.c_str(), (ull)buffer.begin,
                (ull)(buffer.end - buffer.begin), when.c_str());
}

bool LiveBuffers::meet(const Buffer &a, const Buffer &b) {
  if (a.isAlways() || b.isAlways())
    return true;
  return a.program == b.program && a.first <= b.last && b.first <= a.last;
}

void LiveBuffers::check(Findings &findings, uint32_t layoutNumber) const {
  std::vector<const Buffer *> sorted;
  for (const Buffer &buffer : buffers)
    sorted.push_back(&buffer);
  std::sort(sorted.begin(), sorted.end(), [](const Buffer *a, const Buffer *b) {
    return a->begin != b->begin ? a->begin < b->begin : a < b;
  });
  std::string where = format("layout %u: ", layoutNumber);
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Buffer &buffer = *sorted[i];
    if (!liesInArena(layout, buffer.begin, buffer.begin, buffer.end - buffer.begin))
      findings.add(Fault::bounds, where + buffer.name + format(" %llu", (ull)buffer.begin),
                   where + describe(buffer) +
                       format(", is not within one of the arenas: of %llu bytes on the device, "
                              "%llu on the host and "
                              "%llu in the file",
                              (ull)layout.arena_bytes(), (ull)layout.host_bytes(),
                              (ull)layout.file_bytes()));
    if (buffer.begin % 64 != 0)
      findings.add(Fault::alignment, where + buffer.name + format(" %llu", (ull)buffer.begin),
                   where + describe(buffer) + ": expected a multiple of 64");
    for (size_t j = i + 1; j < sorted.size() && sorted[j]->begin < buffer.end; ++j)
      if (sorted[j]->begin < sorted[j]->end && meet(buffer, *sorted[j]))
        findings.add(Fault::overlap, where + buffer.name + format(" %zu %zu", i, j),
                     where + describe(buffer) + ", and " + describe(*sorted[j]) +
                         format(", share %llu bytes",
                                (ull)(std::min(buffer.end, sorted[j]->end) - sorted[j]->begin)));
  }
}

void LiveBuffers::enter(uint32_t newProgram) {
  program = newProgram;
  now = 0;
  begins.clear();
  ends.clear();
  live.clear();
  for (const Buffer &buffer : buffers) {
    if (buffer.begin == buffer.end)
      continue;
    if (buffer.isAlways())
      live[buffer.begin] = &buffer;
    if (buffer.program != program)
      continue;
    begins[buffer.first].push_back(&buffer);
    ends[buffer.last].push_back(&buffer);
  }
}

void LiveBuffers::begin(uint32_t command, const std::function<void(uint64_t, uint64_t)> &visit) {
  now = command;
  auto at = begins.find(command);
  if (at == begins.end())
    return;
  for (const Buffer *buffer : at->second) {
    live[buffer->begin] = buffer;
    visit(buffer->begin, buffer->end);
  }
}

void LiveBuffers::end(uint32_t command, uint32_t since,
                      const std::function<void(uint64_t, uint64_t)> &visit) {
  auto at = ends.find(command);
  if (at == ends.end())
    return;
  for (const Buffer *buffer : at->second) {
    if (buffer->first < since)
      continue;
    if (auto entry = live.find(buffer->begin); entry != live.end() && entry->second == buffer)
      live.erase(entry);
    visit(buffer->begin, buffer->end);
  }
}

void LiveBuffers::visitShortLived(const std::function<void(uint64_t, uint64_t)> &visit) const {
  uint64_t at = 0, end = fileBegin(layout) + layout.file_bytes();
  std::vector<std::pair<uint64_t, uint64_t>> always;
  for (const Buffer &buffer : buffers)
    if (buffer.isAlways())
      always.push_back({buffer.begin, buffer.end});
  std::sort(always.begin(), always.end());
  for (auto [from, to] : always) {
    if (at < std::min(from, end))
      visit(at, std::min(from, end));
    at = std::max(at, to);
  }
  if (at < end)
    visit(at, end);
}

bool LiveBuffers::contain(uint64_t begin, uint64_t end) const {
  auto behind = live.upper_bound(begin);
  return behind != live.begin() && std::prev(behind)->second->end >= end &&
         lives(*std::prev(behind)->second);
}

std::string LiveBuffers::nameAt(uint64_t begin, uint64_t end) const {
  auto behind = live.upper_bound(begin);
  if (behind != live.begin() && std::prev(behind)->second->end > begin &&
      lives(*std::prev(behind)->second))
    return "'" + std::prev(behind)->second->name + "'";
  if (behind != live.end() && behind->first < end)
    return "'" + behind->second->name + "'";
  return "no live buffer";
}
