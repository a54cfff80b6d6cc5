//===- RankWalk.cpp - Walks the programs of one rank --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executes these steps for each command:
//  1. Begin buffers.
//  2. Compare each access with the shadow (Shadow.h), and record the access there.
//  3. End buffers.
// A transfer has a stream of its own. On this stream, the transfer accesses its source and its
// target when the transfer starts. The wait for the transfer joins this stream. Before the wait, an
// access of another stream to the source or the target races with the transfer if one of the two
// accesses is a write.
//
// The walk takes time O(accesses * (log ranges + ranges per access)).
//
//===----------------------------------------------------------------------===//

#include "null/RankWalk.h"
#include "core/DType.h"
#include "core/Error.h"

using namespace fsdprt;
using ull = unsigned long long;

static uint64_t endOf(const fb::Layout &layout) { return fileBegin(layout) + layout.file_bytes(); }

RankWalk::RankWalk(const fb::Manifest &manifest, const fb::Layout &layout, const Mesh &mesh,
                   uint64_t rank, std::string who, Findings &findings)
    : manifest(manifest), layout(layout), who(std::move(who)), findings(findings),
      accesses(manifest, layout, mesh, rank), buffers(manifest, layout), shadow(endOf(layout) + 1),
      times(1, 0) {}

/// Records an access by the host. It counts as an access of the compute stream, because the host
/// accesses memory only between two runs of programs.
void RankWalk::hostTouches(uint64_t begin, uint64_t bytes, bool writes) {
  Access access(Access::Role::host);
  access.reads = access.needsValue = !writes;
  access.writes = writes;
  access.inArena = liesInArena(layout, begin, begin, bytes);
  access.begin = begin;
  access.end = begin + bytes;
  // LiveBuffers::check() reports a range outside the arena.
  if (access.inArena)
    touch(access, {});
}

void RankWalk::begin() {
  buffers.enter(UINT32_MAX);
  titles.push_back("the beginning");
  now = {};
  hostTouches(layout.block()->offset(), layout.block()->bytes(), true);
  if (layout.rank())
    hostTouches(layout.rank()->offset(), layout.rank()->bytes(), true);
}

void RankWalk::onStates(bool writes) {
  for (uint32_t i = 0; layout.states() && i < layout.states()->size(); ++i) {
    const fb::State &state = *layout.states()->Get(i);
    hostTouches(state.offset(), state.elements() * sizeOf(state.dtype()), writes);
  }
  hostTouches(layout.block()->offset(), layout.block()->bytes(), writes);
}

void RankWalk::restore() { onStates(true); }
void RankWalk::save() { onStates(false); }

void RankWalk::run(const fb::Program &program, const std::string &title) {
  uint32_t number = 0;
  while (manifest.programs()->Get(number) != &program)
    ++number;
  titles.push_back(title);
  programName = printable(program.name()->str());
  now = {};
  now.run = static_cast<uint32_t>(titles.size() - 1);
  buffers.enter(number);
  buffers.visitShortLived([this](uint64_t begin, uint64_t end) { endRange(begin, end); });
  for (uint32_t i = 0; layout.inputs() && i < layout.inputs()->size(); ++i)
    hostTouches(layout.inputs()->Get(i)->offset(), layout.inputs()->Get(i)->bytes(), true);
  if (program.commands())
    walk(*program.commands(), 0, 0);
  now.command = nullptr;
  hostTouches(layout.block()->offset(), layout.block()->bytes(), false);
}

void RankWalk::endRange(uint64_t begin, uint64_t end) {
  shadow.end(std::min(begin, shadow.size()), std::min(end, shadow.size()));
}

/// Walks a block. Buffers that begin before command `since` stay live after the block.
void RankWalk::walk(const Commands &commands, uint32_t iteration, uint32_t since) {
  std::vector<uint32_t> before;
  for (const auto &[id, transfer] : flying)
    before.push_back(id);
  auto endLife = [this](uint64_t begin, uint64_t end) { endRange(begin, end); };
  for (const fb::Command *command : commands) {
    now.command = command;
    now.iteration = iteration;
    ++counts.commands;
    uint32_t number = now.number;
    buffers.begin(number, endLife);
    if (command->body_as_Loop())
      walkLoop(*command);
    else
      execute(*command);
    buffers.end(number, since, endLife);
    ++now.number;
  }
  endBlock(before);
}

void RankWalk::walkLoop(const fb::Command &command) {
  const fb::Loop &loop = *command.body_as_Loop();
  uint32_t first = now.number + 1, last = now.number;
  for (uint32_t k = 0; loop.body() && k < loop.count(); ++k) {
    now.number = first;
    walk(*loop.body(), k, k + 1 < loop.count() ? first : 0);
    last = now.number - 1;
  }
  // The caller then increments now.number, which becomes the number of the command after the loop.
  now.number = last;
}

void RankWalk::execute(const fb::Command &command) {
  if (const fb::Wait *body = command.body_as_Wait())
    return wait(body->id());
  accesses.of(command, now.iteration, current);
  checkClash(command);
  checkMemories(command);
  const fb::Collective *collective = command.body_as_Collective();
  const fb::Copy *copy = command.body_as_Copy();
  Epoch epoch;
  if ((collective && collective->channel()) || (copy && copy->channel()))
    epoch = startTransfer(collective ? collective->id() : copy->id());
  else if (collective)
    ++counts.events;
  for (const Access &access : current)
    touch(access, epoch);
}

/// Reports a fault if two accesses of `command` share bytes and one of the two accesses is a write.
void RankWalk::checkClash(const fb::Command &command) {
  auto clash = accesses.findClash(command, current);
  if (!clash)
    return;
  const Access &a = current[clash->first], &b = current[clash->second];
  report(Fault::overlap, format("%u", now.number),
         format("%s writes %s as %s, which is %s, too", describe(now).c_str(),
                rangeText(std::max(a.begin, b.begin), std::min(a.end, b.end)).c_str(),
                Accesses::nameOf(a).c_str(), Accesses::nameOf(b).c_str()));
}

/// Checks the memory (device, host or file) of each access. All bindings of a kernel must be in the
/// same memory. The bindings of a GPU kernel must be on the device. The ranges of a collective must
/// be on the device. The source and the target of a copy must not both be in the file.
void RankWalk::checkMemories(const fb::Command &command) {
  using Memory = Accesses::Memory;
  auto wrong = [&](const Access &access, const char *where, const std::string &why) {
    report(Fault::bounds, format("%u %s in", now.number, Accesses::nameOf(access).c_str()),
           format("%s has %s at %s %s%s", describe(now).c_str(), Accesses::nameOf(access).c_str(),
                  rangeText(access.begin, access.end).c_str(), where, why.c_str()));
  };
  static const char *const names[] = {"on the device", "on the host", "in the file"};
  for (const Access &access : current) {
    Memory memory = accesses.memoryOf(access), first = accesses.memoryOf(current.front());
    const char *name = names[static_cast<int>(memory)];
    if (!access.inArena || access.role == Access::Role::scratch)
      continue;
    if (command.body_as_Launch() && memory == Memory::file)
      wrong(access, name, ": expected it in the arena of the device or the host");
    else if (command.body_as_Launch() && manifest.gpu() && memory == Memory::host)
      wrong(access, name, ": expected it on the device, where kernels of a GPU run");
    else if (command.body_as_Launch() && memory != first)
      wrong(access, name, std::string(", and binding 0 ") + names[static_cast<int>(first)]);
    else if (command.body_as_Collective() && memory != Memory::device)
      wrong(access, name, ": expected it on the device");
  }
  bool isCopy = command.body_as_Copy() && current.size() == 2;
  if (isCopy && accesses.memoryOf(current[0]) == Memory::file &&
      accesses.memoryOf(current[1]) == Memory::file)
    report(Fault::bounds, format("%u in", now.number),
           format("%s has the source and the target in the file: expected one of them in an arena",
                  describe(now).c_str()));
}

Epoch RankWalk::startTransfer(uint32_t id) {
  ++counts.events;
  if (auto other = flying.find(id); other != flying.end())
    report(Fault::wait, format("again %u", now.number),
           format("%s starts %u again, which %s started and nothing has waited for",
                  describe(now).c_str(), id, describe(other->second.start).c_str()));
  uint32_t stream = 0;
  if (freeStreams.empty()) {
    stream = static_cast<uint32_t>(times.size());
    times.push_back(0);
  } else {
    stream = freeStreams.back();
    freeStreams.pop_back();
  }
  Epoch epoch{stream, ++times[stream]};
  flying[id] = {epoch, now};
  return epoch;
}

void RankWalk::wait(uint32_t id) {
  ++counts.events;
  auto transfer = flying.find(id);
  if (transfer == flying.end())
    return report(Fault::wait, format("nothing %u", now.number),
                  format("%s, which nothing has started", describe(now).c_str()));
  clock.learn(transfer->second.epoch);
  freeStreams.push_back(transfer->second.epoch.stream);
  flying.erase(transfer);
}

/// Reports transfers that a program or an iteration has started but not waited for. `before`
/// contains the ids of the transfers that were in flight at the beginning of the block, in
/// ascending order.
void RankWalk::endBlock(const std::vector<uint32_t> &before) {
  for (const auto &[id, transfer] : flying)
    if (!std::binary_search(before.begin(), before.end(), id))
      report(Fault::wait, format("never %u", transfer.start.number),
             format("%s is not waited for", describe(transfer.start).c_str()));
}

bool RankWalk::checkPlace(const Access &access) {
  std::string key = format("%u %s", now.number, Accesses::nameOf(access).c_str());
  if (!access.inArena) {
    report(Fault::bounds, key,
           format("%s has %s at %s, which is not within one of the arenas: of %llu bytes on the "
                  "device, %llu on the "
                  "host and %llu in "
                  "the file",
                  describe(now).c_str(), Accesses::nameOf(access).c_str(), access.asked.c_str(),
                  (ull)layout.arena_bytes(), (ull)layout.host_bytes(), (ull)layout.file_bytes()));
    return false;
  }
  if (access.begin % access.alignment != 0)
    report(Fault::alignment, key,
           format("%s has %s at %s: expected a multiple of %llu", describe(now).c_str(),
                  Accesses::nameOf(access).c_str(), rangeText(access.begin, access.end).c_str(),
                  (ull)access.alignment));
  if (access.begin < access.end && buffers.areKnown() && !buffers.contain(access.begin, access.end))
    report(Fault::lifetime, key,
           format("%s has %s at %s: no live buffer covers the whole range", describe(now).c_str(),
                  Accesses::nameOf(access).c_str(), rangeText(access.begin, access.end).c_str()));
  return true;
}

void RankWalk::touch(const Access &access, Epoch epoch) {
  if (!checkPlace(access))
    return;
  counts.bytes += access.end - access.begin;
  shadow.visit(access.begin, access.end, [&](uint64_t begin, uint64_t end, const Cell &cell) {
    checkCell(access, epoch, begin, end, cell);
  });
  Touch mark{epoch, now};
  if (access.writes)
    shadow.write(access.begin, access.end, mark);
  // Reads on the compute stream are not recorded, because every transfer that starts later is
  // ordered after these reads.
  else if (epoch.stream != 0)
    shadow.visit(access.begin, access.end, [&](uint64_t, uint64_t, Cell &cell) {
      auto isOver = [this](const Touch &read) { return clock.knows(read.epoch); };
      cell.reads.erase(std::remove_if(cell.reads.begin(), cell.reads.end(), isOver),
                       cell.reads.end());
      cell.reads.push_back(mark);
    });
  if (access.writes && !access.leavesValue)
    shadow.end(access.begin, access.end);
}

/// Reports a race or a missing value in one cell. The clock of the compute stream also applies to
/// an access of a transfer, because the stream of the transfer forks off the compute stream at this
/// time.
void RankWalk::checkCell(const Access &access, Epoch epoch, uint64_t begin, uint64_t end,
                         const Cell &cell) {
  auto isOver = [&](const Touch &other) {
    return clock.knows(other.epoch) || other.epoch.stream == 0 ||
           (other.epoch.stream == epoch.stream && other.epoch.time == epoch.time);
  };
  if (!isOver(cell.write))
    return reportRace(access, begin, end, cell.write, true);
  for (const Touch &read : cell.reads)
    if (access.writes && !isOver(read))
      return reportRace(access, begin, end, read, false);
  if (!access.needsValue || cell.state == Cell::written)
    return;
  std::string left = ", which nothing has written";
  if (cell.state == Cell::ended && cell.write.moment.command)
    left = format(
        ", which nothing has written since its buffer's life began; it has what %s left there",
        describe(cell.write.moment).c_str());
  report(Fault::uninitialised, format("%u %s", now.number, Accesses::nameOf(access).c_str()),
         format("%s reads %s as %s%s", describe(now).c_str(), rangeText(begin, end).c_str(),
                Accesses::nameOf(access).c_str(), left.c_str()));
}

void RankWalk::report(Fault fault, const std::string &key, const std::string &text) {
  findings.add(fault, programName + " " + key,
               format("%s, %s: %s", titles[now.run].c_str(), who.c_str(), text.c_str()));
}

void RankWalk::reportRace(const Access &access, uint64_t begin, uint64_t end, const Touch &other,
                          bool otherWrites) {
  const fb::Command &started = *other.moment.command;
  const fb::Collective *collective = started.body_as_Collective();
  const char *does = !otherWrites
                         ? (collective ? "still sends, peers read it in place" : "still reads")
                     : collective ? "still receives"
                                  : "still writes";
  uint32_t id = collective ? collective->id() : started.body_as_Copy()->id();
  report(Fault::race, format("%u %u", now.number, other.moment.number),
         format("%s %s %s as %s, which %s %s; expected a wait for %u before", describe(now).c_str(),
                access.writes ? "writes" : "reads", rangeText(begin, end).c_str(),
                Accesses::nameOf(access).c_str(), describe(other.moment).c_str(), does, id));
}

std::string RankWalk::rangeText(uint64_t begin, uint64_t end) const {
  return format("[%llu, +%llu) of %s", (ull)begin, (ull)(end - begin),
                buffers.nameAt(begin, end).c_str());
}

std::string RankWalk::describe(const Moment &moment) const {
  if (!moment.command)
    return "the host";
  std::string text =
      format("command %u (%s)", moment.number, fsdprt::describe(manifest, *moment.command).c_str());
  if (moment.run != now.run)
    return text + " of " + titles[moment.run];
  return moment.iteration == now.iteration ? text
                                           : text + format(" of iteration %u", moment.iteration);
}
