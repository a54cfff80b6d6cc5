//===- Order.cpp - Order of collectives across ranks ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks that have the same manifest share a list of collectives. At most one finding is reported
// for a program, because later collectives cannot complete after the first fault.
//
//===----------------------------------------------------------------------===//

#include "null/Order.h"
#include "core/Error.h"
#include "null/Accesses.h"
#include <algorithm>
#include <deque>
#include <set>

using namespace fsdprt;

namespace {

/// One execution of a collective command. An iteration of a loop executes the command again.
/// isSame() compares the properties that must be equal on all members.
struct Meeting {
  const fb::Command *command;
  uint32_t number; // number of the command
  std::vector<uint32_t> axes;

  const fb::Collective &body() const { return *command->body_as_Collective(); }
  bool isSameCommunicator(const Meeting &other) const {
    return axes == other.axes && body().channel() == other.body().channel();
  }
  bool isSame(const Meeting &other) const {
    const fb::Collective &a = body(), &b = other.body();
    return isSameCommunicator(other) && a.kind() == b.kind() && a.dtype() == b.dtype() &&
           a.count() == b.count() && a.reduction() == b.reduction() && a.root() == b.root() &&
           a.id() == b.id() && a.unit() == b.unit();
  }
};
using Meetings = std::vector<Meeting>;
using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;

class OrderChecker {
public:
  OrderChecker(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
               const std::string &name, Findings &findings);
  OrderCounts run();

private:
  void collect(const Commands *commands, uint32_t &number, Meetings &into) const;
  const std::vector<uint32_t> &membersOf(uint32_t rank, const std::vector<uint32_t> &axes);
  const Meeting *at(uint32_t rank) const {
    const Meetings &all = *lists[rank];
    return places[rank] < all.size() ? &all[places[rank]] : nullptr;
  }
  bool meet(uint32_t rank, std::deque<uint32_t> &ready);
  void reportStuck();
  std::string describe(uint32_t rank) const;

  const std::vector<const fb::Manifest *> &manifests;
  const Mesh &mesh;
  const std::string &name;
  Findings &findings;
  std::map<const fb::Manifest *, Meetings> meetings;
  std::vector<const Meetings *> lists; // by rank
  std::vector<size_t> places;          // index of each rank's next collective
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::vector<uint32_t>> members;
  std::set<std::pair<std::vector<uint32_t>, uint32_t>> communicators; // axes and channel
  OrderCounts counts;
};

} // namespace

OrderChecker::OrderChecker(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                           const std::string &name, Findings &findings)
    : manifests(manifests), mesh(mesh), name(name), findings(findings),
      places(manifests.size(), 0) {
  for (const fb::Manifest *manifest : manifests) {
    auto [entry, isNew] = meetings.emplace(manifest, Meetings());
    if (isNew)
      for (const fb::Program *program : *manifest->programs())
        if (program->name()->str() == name) {
          uint32_t number = 0;
          collect(program->commands(), number, entry->second);
        }
    lists.push_back(&entry->second);
  }
}

void OrderChecker::collect(const Commands *commands, uint32_t &number, Meetings &into) const {
  for (uint32_t i = 0; commands && i < commands->size(); ++i, ++number) {
    const fb::Command &command = *commands->Get(i);
    if (const fb::Collective *collective = command.body_as_Collective()) {
      Meeting meeting{&command, number, {}};
      if (collective->axes())
        meeting.axes.assign(collective->axes()->begin(), collective->axes()->end());
      into.push_back(std::move(meeting));
    }
    const fb::Loop *loop = command.body_as_Loop();
    uint32_t first = number + 1;
    for (uint32_t k = 0; loop && loop->body() && k < loop->count(); ++k) {
      number = first;
      collect(loop->body(), number, into);
    }
    number -= loop && loop->body() && loop->count();
  }
}

const std::vector<uint32_t> &OrderChecker::membersOf(uint32_t rank,
                                                     const std::vector<uint32_t> &axes) {
  auto [entry, isNew] = members.emplace(std::pair(rank, axes), std::vector<uint32_t>());
  if (isNew)
    entry->second = mesh.group(rank, axes);
  return entry->second;
}

/// If all members of the group have stopped at the same collective as `rank`, completes this
/// collective: advances the members, appends them to `ready`, and returns true.
bool OrderChecker::meet(uint32_t rank, std::deque<uint32_t> &ready) {
  const Meeting *mine = at(rank);
  if (!mine)
    return false;
  const std::vector<uint32_t> &group = membersOf(rank, mine->axes);
  for (uint32_t member : group)
    if (const Meeting *other = at(member); !other || !mine->isSame(*other))
      return false;
  for (uint32_t member : group) {
    ++places[member];
    ready.push_back(member);
  }
  counts.collectives += 1;
  communicators.insert({mine->axes, mine->body().channel()});
  return true;
}

std::string OrderChecker::describe(uint32_t rank) const {
  const Meeting *meeting = at(rank);
  if (!meeting)
    return format("rank %u is at the end of the program", rank);
  const fb::Collective &body = meeting->body();
  uint64_t bytes = std::max(body.source()->bytes(), body.target()->bytes());
  return format(
      "rank %u is at command %u (%s, %llu elements of %s, [%llu, +%llu) -> [%llu, +%llu), %llu "
      "bytes)",
      rank, meeting->number, fsdprt::describe(*manifests[rank], *meeting->command).c_str(),
      (unsigned long long)body.count(), fb::EnumNameDType(body.dtype()),
      (unsigned long long)body.source()->offset(), (unsigned long long)body.source()->bytes(),
      (unsigned long long)body.target()->offset(), (unsigned long long)body.target()->bytes(),
      (unsigned long long)bytes);
}

/// Reports the first rank that cannot advance, and a member of its group that has not stopped at
/// the same collective.
void OrderChecker::reportStuck() {
  for (uint32_t rank = 0; rank < lists.size(); ++rank) {
    const Meeting *mine = at(rank);
    if (!mine)
      continue;
    for (uint32_t member : membersOf(rank, mine->axes)) {
      const Meeting *other = at(member);
      if (other && mine->isSame(*other))
        continue;
      bool isSameLine = other && mine->isSameCommunicator(*other);
      return findings.add(
          Fault::order, name,
          format("program '%s': %s, while %s; %s", printable(name).c_str(), describe(rank).c_str(),
                 describe(member).c_str(),
                 isSameLine
                     ? "expected the same collective on all members of a group"
                     : "each would wait for ever: expected one order of collectives on all ranks"));
    }
  }
}

OrderCounts OrderChecker::run() {
  std::deque<uint32_t> ready;
  for (uint32_t rank = 0; rank < lists.size(); ++rank)
    ready.push_back(rank);
  while (!ready.empty()) {
    uint32_t rank = ready.front();
    ready.pop_front();
    meet(rank, ready);
  }
  reportStuck();
  counts.communicators = communicators.size();
  return counts;
}

OrderCounts fsdprt::checkOrder(const std::vector<const fb::Manifest *> &manifests, const Mesh &mesh,
                               const std::string &name, Findings &findings) {
  return OrderChecker(manifests, mesh, name, findings).run();
}
