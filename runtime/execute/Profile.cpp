//===- Profile.cpp - Times of a program's commands --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. There is one entry for each kernel, one for each type of collective, one for all copies, and
//     one for all fills. A launch belongs to the entry of its kernel, and a collective belongs to
//     the entry of its type. A wait belongs to the entry of the transfer that it completes.
//     Commands `initialise` and loops belong to no entry.
//  2. An entry contains sums over its commands, such as the number of executions, the time and the
//     bytes. A wait contributes only its time.
//  3. Entries are sorted by descending time.
//
// The bytes of a launch are `moved_bytes` of the kernel, if the manifest contains this number. The
// bytes of any other command are the total size of all ranges that the command uses. A kernel moves
// fewer bytes than these ranges have if it reads only some rows of a table. It moves more bytes if
// it reads a range twice.
//
//===----------------------------------------------------------------------===//

#include "execute/Profile.h"
#include <algorithm>
#include <map>

using namespace fsdprt;

uint64_t fsdprt::bytesOf(const fb::Manifest &manifest, const fb::Launch &launch) {
  uint64_t bytes = manifest.kernels()->Get(launch.kernel())->moved_bytes();
  bool isKnown = bytes != 0;
  for (uint32_t i = 0; !isKnown && launch.bindings() && i < launch.bindings()->size(); ++i)
    bytes += launch.bindings()->Get(i)->bytes();
  return bytes;
}

uint64_t fsdprt::bytesOf(const fb::Manifest &manifest, const Instruction &instruction) {
  uint64_t bytes = 0;
  if (instruction.kind == fb::Body::Launch) {
    bytes = bytesOf(manifest, *static_cast<const fb::Launch *>(instruction.body));
  } else if (instruction.kind == fb::Body::Collective) {
    const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
    bytes = collective.source()->bytes() + collective.target()->bytes();
  } else if (instruction.kind == fb::Body::Copy) {
    bytes = 2 * static_cast<const fb::Copy *>(instruction.body)->source()->bytes();
  } else if (instruction.kind == fb::Body::Fill) {
    bytes = static_cast<const fb::Fill *>(instruction.body)->target()->bytes();
  }
  return bytes;
}

static const char *orEmpty(const flatbuffers::String *text) { return text ? text->c_str() : ""; }

namespace {
/// Identifies an entry by the type of its commands and by the index of the kernel or the type of
/// collective.
using Key = std::pair<fb::Body, uint32_t>;
} // namespace

/// Returns an entry for a command, in which all counts are zero. Sets `key` to the key of this
/// entry.
static fsdprt_profile_entry describe(const fb::Manifest &manifest, const Instruction &instruction,
                                     Key &key) {
  fsdprt_profile_entry entry = {};
  entry.struct_size = sizeof entry;
  entry.label = instruction.label;
  key = {instruction.kind, 0};
  if (instruction.kind == fb::Body::Collective) {
    const auto *collective = static_cast<const fb::Collective *>(instruction.body);
    key = {fb::Body::Collective, static_cast<uint32_t>(collective->kind())};
    entry.name = fb::EnumNameCollectiveKind(collective->kind());
    entry.kind = "collective";
  } else if (instruction.kind == fb::Body::Launch) {
    key.second = static_cast<const fb::Launch *>(instruction.body)->kernel();
    const fb::Kernel &kernel = *manifest.kernels()->Get(key.second);
    entry.name = orEmpty(kernel.name());
    entry.kind = orEmpty(kernel.kind());
  } else {
    entry.name = instruction.kind == fb::Body::Copy ? "copy" : "fill";
    entry.kind = "memory";
  }
  return entry;
}

std::vector<fsdprt_profile_entry> Profile::entries() const {
  // The command that started each transfer, by id of the transfer.
  std::map<uint32_t, const Instruction *> started;
  std::map<Key, fsdprt_profile_entry> sums;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i], *counted = &instruction;
    if (instruction.kind == fb::Body::Collective)
      started[static_cast<const fb::Collective *>(instruction.body)->id()] = &instruction;
    else if (const auto *copy = static_cast<const fb::Copy *>(instruction.body);
             instruction.kind == fb::Body::Copy && copy->channel())
      started[copy->id()] = &instruction;
    else if (instruction.kind == fb::Body::Wait)
      counted = started.at(static_cast<const fb::Wait *>(instruction.body)->id());
    if (counters[i].runs == 0 || instruction.kind == fb::Body::Initialise)
      continue;
    Key key;
    fsdprt_profile_entry fresh = describe(manifest, *counted, key);
    fsdprt_profile_entry &entry = sums.emplace(key, fresh).first->second;
    entry.nanoseconds += counters[i].nanoseconds;
    if (instruction.kind == fb::Body::Wait)
      continue;
    entry.runs += counters[i].runs;
    entry.bytes += counters[i].runs * bytesOf(manifest, instruction);
    if (instruction.kind != fb::Body::Launch)
      continue;
    const fb::Kernel &kernel =
        *manifest.kernels()->Get(static_cast<const fb::Launch *>(instruction.body)->kernel());
    entry.multiply_adds += counters[i].runs * kernel.multiply_adds();
    entry.bf16_multiply_adds += counters[i].runs * kernel.bf16_multiply_adds();
  }
  std::vector<fsdprt_profile_entry> result;
  for (const auto &[key, entry] : sums)
    result.push_back(entry);
  std::sort(result.begin(), result.end(),
            [](const auto &a, const auto &b) { return a.nanoseconds > b.nanoseconds; });
  return result;
}
