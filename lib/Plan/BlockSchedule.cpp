//===- BlockSchedule.cpp - Starts and waits of one block --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gathers start as late as hides them, reductions end as early as they can: both hold
// their buffers no longer than that takes. So do copies between the arenas: those that bring what
// is needed are late, those that take away what is not needed any more are early.
//
//   slots      0    1    2    3    4    5
//   compute    | C0 | C1 | C2 | C3 | C4 |
//   gather              S========W            read by C3: back from there by its time
//   reduce                  S======W          written by C1: forward from there
//   to host                 S===W             written by C1, not read until the backward
//
//  1. Commands that only prepare a gather (the cast of a shard) move with its start, those that
//     only take up a reduction or what came to the host (a cast, a norm of it) with its wait. All
//     others are fixed, and make the slots.
//  2. Windows: a start is behind all fixed commands that it must follow, a wait before all
//     that must follow it.
//  3. Early transfers, the one that can start first of all the next: each begins when its source is
//     whole and the one before it on its channel is done, and is waited for at the first slot
//     behind its end.
//  4. Late ones from the last to the first, by who is needed when: each ends at its window's end or
//     where the next one on its channel begins, and starts at the last slot that is early enough.
//     One that nothing here reads ends as early as it can.
//  5. Each stops where memory would pass the limit, or more of its kind be ahead than allowed: of a
//     file, what one launch needs is read, and what one has written is on its way, beside the
//     launch in between.
//  6. Collectives that may start as one stand beside each other (BlockBuckets.cpp).
//  7. In a slot: what can start starts, then waits; a transfer that needs another one's result
//     starts behind its wait.
//
// Time in a slot is that of the compute before it; stalls are not known yet, which `slack`
// makes up for. O(commands + transfers²).
//
//===----------------------------------------------------------------------===//

#include "BlockSchedule.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/InFlight.h"
#include "fsdp/IR/Memory.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

/// A copy of fewer bytes is done before another thread is awake.
static constexpr int64_t minBytesApart = 4096;

static bool isReduction(CollectiveOp op) {
  return op.getKind() == CollectiveKind::reduce_scatter ||
         op.getKind() == CollectiveKind::all_reduce;
}

BlockSchedule::BlockSchedule(const CommandGraph &graph, LayoutOp layout,
                             llvm::function_ref<double(Operation *)> getSeconds,
                             llvm::function_ref<double(CollectiveOp)> getLatency,
                             ArrayRef<int64_t> live)
    : graph(graph), live(live) {
  roles.assign(graph.getCommands().size(), Role::fixed);
  homes.assign(graph.getCommands().size(), none);
  findTransfers(layout, getSeconds, getLatency);
  findPrologues();
  findEpilogues();
  time.push_back(0);
  for (unsigned command = 0; command < roles.size(); ++command) {
    slots.push_back(fixed.size());
    if (roles[command] != Role::fixed)
      continue;
    fixed.push_back(command);
    time.push_back(time.back() + seconds[command]);
  }
  findWindows();
}

//===----------------------------------------------------------------------===//
// Steps 1 and 2
//===----------------------------------------------------------------------===//

std::optional<BlockSchedule::Transfer>
BlockSchedule::describe(CollectiveOp op, unsigned number,
                        llvm::DenseSet<Attribute> &gathered) const {
  if (op.getChannel())
    return std::nullopt;
  Transfer transfer;
  transfer.command = number;
  transfer.isLate = !isReduction(op);
  transfer.channel = transfer.isLate ? gatherChannel : reduceChannel;
  bool isPiece = op.getSource().getBuffer() == op.getTarget().getBuffer();
  transfer.bytes = transfer.isLate ? op.getTarget().getBytes()
                   : isPiece       ? 0
                                   : op.getSource().getBytes();
  transfer.isBackward = transfer.isLate && op.getUnitAttr() && !op.getRows() &&
                        !gathered.insert(op.getUnitAttr()).second;
  return transfer;
}

/// A copy to the host is early where it frees what it copies: states stay. One to a file is.
std::optional<BlockSchedule::Transfer>
BlockSchedule::describe(CopyOp op, unsigned number, LayoutOp layout,
                        SymbolTableCollection &tables) const {
  auto source = tables.lookupSymbolIn<BufferOp>(layout, op.getSource().getBuffer());
  auto target = tables.lookupSymbolIn<BufferOp>(layout, op.getTarget().getBuffer());
  int64_t bytes = op.getSource().getBytes();
  Memory from = getMemory(source), to = getMemory(target);
  bool isFile = from == Memory::file || to == Memory::file;
  if (getChannel(op) || from == to || (bytes < minBytesApart && !isFile))
    return std::nullopt;
  Transfer transfer;
  transfer.command = number;
  transfer.channel = from == Memory::file   ? fromFileChannel
                     : to == Memory::file   ? toFileChannel
                     : to == Memory::device ? toDeviceChannel
                                            : toHostChannel;
  transfer.isLate = to == Memory::device || (to == Memory::host && source.isPersistent());
  BufferOp held = transfer.isLate ? target : source;
  transfer.bytes = getMemory(held) != Memory::device || held.isPersistent() ? 0 : bytes;
  return transfer;
}

void BlockSchedule::findTransfers(LayoutOp layout,
                                  llvm::function_ref<double(Operation *)> getSeconds,
                                  llvm::function_ref<double(CollectiveOp)> getLatency) {
  llvm::DenseSet<Attribute> gathered;
  SymbolTableCollection tables;
  for (auto [number, command] : llvm::enumerate(graph.getCommands())) {
    seconds.push_back(getSeconds(command));
    std::optional<Transfer> transfer;
    if (auto collective = dyn_cast<CollectiveOp>(command))
      transfer = describe(collective, number, gathered);
    else if (auto copy = dyn_cast<CopyOp>(command))
      transfer = describe(copy, number, layout, tables);
    if (!transfer)
      continue;
    transfer->seconds = seconds.back();
    if (auto collective = dyn_cast<CollectiveOp>(command)) {
      transfer->latency = std::min(transfer->seconds, getLatency(collective));
      transfer->sentBytes =
          std::max(collective.getSource().getBytes(), collective.getTarget().getBytes());
    }
    roles[number] = Role::transfer;
    homes[number] = transfers.size();
    transfers.push_back(*transfer);
  }
}

/// Launches, copies and fills before a gather that nothing in front of it has to wait for: what is
/// behind the gather stays behind them wherever they go.
void BlockSchedule::findPrologues() {
  for (unsigned index = 0; index < transfers.size(); ++index) {
    Transfer &transfer = transfers[index];
    if (transfer.channel != gatherChannel)
      continue;
    for (unsigned command : graph.getBefore(transfer.command)) {
      if (roles[command] != Role::fixed || isa<LoopOp>(graph.getCommands()[command]) ||
          graph.getBehind(command).front() != transfer.command)
        continue;
      roles[command] = Role::prologue;
      homes[command] = index;
      transfer.prologue.push_back(command);
    }
  }
}

/// Behind the last fixed command that it must follow, or that a transfer must which it takes up.
unsigned BlockSchedule::getSourceEnd(const Transfer &transfer) const {
  unsigned end = 0;
  for (unsigned earlier : graph.getBefore(transfer.command)) {
    if (roles[earlier] == Role::fixed)
      end = std::max(end, earlier + 1);
    else if (roles[earlier] == Role::transfer)
      end = std::max(end, getSourceEnd(transfers[homes[earlier]]));
  }
  return end;
}

/// Launches behind a reduction, or behind a copy to the host, and copies of few bytes behind these,
/// that depend on no other transfer and whose results are not needed at once.
void BlockSchedule::findEpilogues() {
  for (unsigned command = 0; command < roles.size(); ++command) {
    if (!isa<LaunchOp, CopyOp>(graph.getCommands()[command]) || roles[command] != Role::fixed)
      continue;
    unsigned home = none, lastFixed = 0;
    bool single = true, isTakenUp = isa<LaunchOp>(graph.getCommands()[command]);
    for (unsigned earlier : graph.getBefore(command)) {
      if (roles[earlier] == Role::fixed)
        lastFixed = std::max(lastFixed, earlier + 1);
      if (roles[earlier] == Role::fixed || roles[earlier] == Role::prologue)
        continue;
      unsigned other = homes[earlier];
      single &= (home == none || home == other) && !transfers[other].isLate;
      isTakenUp |= roles[earlier] == Role::epilogue;
      home = other;
    }
    // Wherever the wait will be, what else it reads is there.
    if (home == none || !single || !isTakenUp || lastFixed > getSourceEnd(transfers[home]))
      continue;
    roles[command] = Role::epilogue;
    homes[command] = home;
    transfers[home].epilogue.push_back(command);
  }
}

void BlockSchedule::findWindows() {
  for (Transfer &transfer : llvm::reverse(transfers)) {
    transfer.earliest = 0;
    transfer.latest = fixed.size();
    auto follow = [&](unsigned command) {
      for (unsigned earlier : graph.getBefore(command))
        if (roles[earlier] == Role::fixed)
          transfer.earliest = std::max(transfer.earliest, slots[earlier] + 1);
    };
    follow(transfer.command);
    llvm::for_each(transfer.prologue, follow);
    auto precede = [&](unsigned command) {
      for (unsigned later : graph.getBehind(command)) {
        if (roles[later] == Role::fixed)
          transfer.latest = std::min(transfer.latest, slots[later]);
        else if (homes[later] !=
                 homes[transfer.command]) // of a transfer behind, whose window is known
          transfer.latest = std::min(transfer.latest, transfers[homes[later]].latest);
      }
    };
    precede(transfer.command);
    llvm::for_each(transfer.prologue, precede);
    llvm::for_each(transfer.epilogue, precede);
    transfer.isEarly = !transfer.isLate || transfer.latest == fixed.size();
  }
}

//===----------------------------------------------------------------------===//
// Steps 3 to 5
//===----------------------------------------------------------------------===//

void BlockSchedule::addBytes(unsigned from, unsigned to, int64_t bytes) {
  for (unsigned slot = from; slot < to; ++slot)
    extra[slot] += bytes;
}

/// The farthest slot from `from` to `to` up to which `bytes` more fit at each fixed command
/// between.
unsigned BlockSchedule::limitByMemory(const Transfer &transfer, unsigned from, unsigned to,
                                      bool downwards, int64_t bytes) const {
  auto fits = [&](unsigned slot) {
    return live[fixed[slot]] + extra[slot] + transfer.bytes <= bytes;
  };
  unsigned slot = from;
  if (downwards)
    while (slot > to && fits(slot - 1))
      --slot;
  else
    while (slot < to && fits(slot))
      ++slot;
  return slot;
}

/// The slot of its wait; of a late one that has no place yet, the first at which it can have ended.
unsigned BlockSchedule::getEnd(const Transfer &transfer) const {
  if (transfer.isPlaced || transfer.isEarly)
    return transfer.wait;
  unsigned slot = std::max(transfer.earliest, getEndOfSources(transfer));
  double end = time[slot] + transfer.seconds;
  while (slot < transfer.latest && time[slot] < end)
    ++slot;
  return slot;
}

/// The slot of the last wait that `transfer` has to follow.
unsigned BlockSchedule::getEndOfSources(const Transfer &transfer) const {
  unsigned end = 0;
  auto follow = [&](unsigned command) {
    for (unsigned earlier : graph.getBefore(command))
      if (roles[earlier] != Role::fixed && homes[earlier] != homes[transfer.command])
        end = std::max(end, getEnd(transfers[homes[earlier]]));
  };
  follow(transfer.command);
  llvm::for_each(transfer.prologue, follow);
  return end;
}

/// The slot of the first start that has to follow `transfer`.
unsigned BlockSchedule::getBeginOfReaders(const Transfer &transfer) const {
  unsigned begin = transfer.latest;
  for (unsigned later : graph.getBehind(transfer.command))
    if (roles[later] != Role::fixed && homes[later] != homes[transfer.command])
      begin = std::min(begin, transfers[homes[later]].start);
  return begin;
}

/// The early transfer that can start first, of those that are not placed; null when all are.
BlockSchedule::Transfer *BlockSchedule::findNextEarly() {
  Transfer *next = nullptr;
  for (Transfer &transfer : transfers) {
    if (!transfer.isEarly || transfer.isPlaced)
      continue;
    auto isKnown = [&](unsigned command) {
      return llvm::all_of(graph.getBefore(command), [&](unsigned earlier) {
        if (roles[earlier] == Role::fixed || homes[earlier] == homes[transfer.command])
          return true;
        const Transfer &other = transfers[homes[earlier]];
        return other.isPlaced || !other.isEarly;
      });
    };
    if (!isKnown(transfer.command) || !llvm::all_of(transfer.prologue, isKnown))
      continue;
    transfer.start = std::max(transfer.earliest, getEndOfSources(transfer));
    if (!next || transfer.start < next->start)
      next = &transfer;
  }
  return next;
}

/// What a launch wrote for a file is there when the next launch has written: as what is read ahead,
/// not more than one launch's.
unsigned BlockSchedule::limitByFile(const Transfer &transfer, unsigned latest) const {
  if (transfer.channel != toFileChannel)
    return latest;
  for (const Transfer &other : transfers)
    if (other.channel == toFileChannel && other.earliest > transfer.start)
      latest = std::min(latest, other.earliest);
  return latest;
}

void BlockSchedule::placeEarly(const ScheduleLimits &limits) {
  std::map<int64_t, double> free; // when the channels are
  while (Transfer *next = findNextEarly()) {
    Transfer &transfer = *next;
    transfer.isPlaced = true;
    double begin = std::max(time[transfer.start], free[transfer.channel]);
    free[transfer.channel] = begin + transfer.seconds;
    double end = begin + transfer.seconds * limits.slack;
    unsigned latest = std::max(transfer.start, transfer.latest),
             bound = limitByFile(transfer, latest), wait = transfer.start;
    while (wait < bound && time[wait] < end)
      ++wait;
    transfer.limit = time[wait] >= end ? "" : bound < latest ? "prefetch" : "first use";
    unsigned home = std::max(transfer.start, slots[transfer.command]);
    if (limits.bytes > 0 && wait > home)
      if (unsigned most = limitByMemory(transfer, home, wait, false, limits.bytes); most < wait) {
        wait = most;
        transfer.limit = "memory";
      }
    transfer.wait = wait;
    addBytes(std::min(home, wait), wait, transfer.bytes);
  }
}

/// `before`: late ones of its channel that are needed before it; `next`: when the channel is needed
/// for those behind.
void BlockSchedule::placeLate(Transfer &transfer, ArrayRef<Transfer *> before, double &next,
                              const ScheduleLimits &limits) {
  transfer.wait = getBeginOfReaders(transfer);
  double begin = std::min(time[transfer.wait], next) - transfer.seconds * limits.slack;
  next = std::min(time[transfer.wait], next) - transfer.seconds;
  unsigned slot = transfer.wait, home = slots[transfer.command];
  unsigned floor = std::max(transfer.earliest, std::min(getEndOfSources(transfer), transfer.wait));
  while (slot > floor && time[slot] > begin)
    --slot;
  transfer.limit = time[slot] > begin ? (floor == 0 ? "beginning" : "source") : "";
  bool isCopy = transfer.channel != gatherChannel;
  int64_t ahead = isCopy                ? limits.copyPrefetch
                  : transfer.isBackward ? limits.backwardPrefetch
                                        : limits.forwardPrefetch;
  if (ahead >= 0) {
    // Not before the one that is `ahead` places in front of it is waited for.
    size_t index = before.size();
    unsigned least = ahead == 0                            ? transfer.wait
                     : index >= static_cast<size_t>(ahead) ? before[index - ahead]->latest
                                                           : 0;
    if (least > slot) {
      slot = std::min(least, transfer.wait);
      transfer.limit = "prefetch";
    }
  }
  // What is read from a file for one launch, not before that for the launch in front of it is
  // there: two buffers of each.
  if (transfer.channel == fromFileChannel)
    for (Transfer *other : llvm::reverse(before))
      if (other->latest < transfer.latest) {
        if (other->latest > slot)
          transfer.limit = "prefetch";
        slot = std::max(slot, std::min(other->latest, transfer.wait));
        break;
      }
  if (limits.bytes > 0 && slot < home) // what reads it may have moved in front of its home
    if (unsigned least =
            std::min(limitByMemory(transfer, home, slot, true, limits.bytes), transfer.wait);
        least > slot) {
      slot = least;
      transfer.limit = "memory";
    }
  transfer.start = slot;
  transfer.isPlaced = true;
  addBytes(slot, std::max(home, slot), transfer.bytes);
}

void BlockSchedule::placeLate(const ScheduleLimits &limits) {
  SmallVector<Transfer *> late;
  for (Transfer &transfer : transfers)
    if (!transfer.isEarly)
      late.push_back(&transfer);
  llvm::sort(late, [](Transfer *a, Transfer *b) {
    return std::make_pair(a->latest, a->command) < std::make_pair(b->latest, b->command);
  });
  std::map<int64_t, SmallVector<Transfer *>> channels;
  for (Transfer *transfer : late)
    channels[transfer->channel].push_back(transfer);
  std::map<int64_t, double> next;
  for (Transfer *transfer : llvm::reverse(late)) {
    SmallVector<Transfer *> &channel = channels[transfer->channel];
    channel.pop_back();
    double &needed =
        next.try_emplace(transfer->channel, std::numeric_limits<double>::infinity()).first->second;
    placeLate(*transfer, channel, needed, limits);
  }
}

void BlockSchedule::place(const ScheduleLimits &limits) {
  extra.assign(fixed.size() + 1, 0);
  for (Transfer &transfer : transfers) {
    transfer.start = transfer.wait = transfer.latest;
    transfer.isPlaced = false;
    transfer.bucket = none;
    transfer.joins = false;
  }
  placeEarly(limits);
  placeLate(limits);
  formBuckets(limits);
  markLaunches();
}

int64_t BlockSchedule::getPeak() const {
  int64_t peak = 0;
  for (auto [slot, command] : llvm::enumerate(fixed))
    peak = std::max(peak, live[command] + extra[slot]);
  return peak;
}

//===----------------------------------------------------------------------===//
// Step 7
//===----------------------------------------------------------------------===//

SmallVector<SmallVector<BlockSchedule::Event>> BlockSchedule::orderEvents() const {
  SmallVector<SmallVector<Event>> order(fixed.size() + 1), pending(fixed.size() + 1);
  SmallVector<unsigned> byWait = llvm::to_vector(llvm::seq<unsigned>(0, transfers.size()));
  llvm::sort(byWait, [&](unsigned a, unsigned b) {
    return std::make_pair(transfers[a].wait, a) < std::make_pair(transfers[b].wait, b);
  });
  // On one channel starts are in the order of the waits.
  for (unsigned index : byWait)
    if (transfers[index].bucket == none || transfers[index].bucket == index) // else with its leader
      pending[transfers[index].start].push_back({Event::Kind::start, index});
  for (unsigned index : byWait)
    pending[transfers[index].wait].push_back({Event::Kind::wait, index});
  SmallVector<bool> started(transfers.size(), false), waited(transfers.size(), false);
  auto isReady = [&](const Event &event) {
    const Transfer &transfer = transfers[event.transfer];
    if (event.kind == Event::Kind::wait)
      return static_cast<bool>(started[event.transfer]);
    auto isDone = [&](unsigned command) {
      return llvm::all_of(graph.getBefore(command), [&](unsigned earlier) {
        return roles[earlier] == Role::fixed || homes[earlier] == event.transfer ||
               waited[homes[earlier]];
      });
    };
    return isDone(transfer.command) && llvm::all_of(transfer.prologue, isDone);
  };
  auto areReady = [&](const Event &event) {
    if (event.kind == Event::Kind::wait)
      return isReady(event);
    return llvm::all_of(getBucket(event.transfer),
                        [&](unsigned member) { return isReady({event.kind, member}); }) &&
           isReady(event);
  };
  for (auto [slot, events] : llvm::enumerate(pending))
    while (!events.empty()) {
      auto next = llvm::find_if(events, areReady);
      assert(next != events.end() && "transfers that wait for each other");
      SmallVector<unsigned> members =
          next->kind == Event::Kind::start ? getBucket(next->transfer) : SmallVector<unsigned>();
      if (members.empty())
        members.push_back(next->transfer);
      for (unsigned member : members) {
        (next->kind == Event::Kind::start ? started : waited)[member] = true;
        order[slot].push_back({next->kind, member});
      }
      events.erase(next);
    }
  return order;
}

/// Of what a launch stalls the line, the part of one of its collectives.
double BlockSchedule::getExposed(const Transfer &transfer, const Timeline &line) const {
  if (transfer.bucket == none)
    return line.exposed[homes[transfer.command]];
  double sum = 0;
  for (unsigned member : getBucket(transfer.bucket))
    sum += getSeconds(transfers[member]);
  return sum > 0 ? line.exposed[transfer.bucket] * getSeconds(transfer) / sum : 0;
}

/// What starts with an event: at the first start of a bucket all of it, at the others nothing.
SmallVector<unsigned> BlockSchedule::getLaunch(const Event &event) const {
  const Transfer &transfer = transfers[event.transfer];
  if (transfer.bucket == none)
    return {event.transfer};
  SmallVector<unsigned> bucket = getBucket(transfer.bucket);
  return bucket.front() == event.transfer ? bucket : SmallVector<unsigned>();
}

Timeline BlockSchedule::simulate(double slower) const {
  SmallVector<TimelineEvent> events;
  auto compute = [&](unsigned command) {
    events.push_back({TimelineEvent::Kind::compute, seconds[command]});
  };
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    for (const Event &event : here) {
      const Transfer &transfer = transfers[event.transfer];
      unsigned launch = transfer.bucket == none ? event.transfer : transfer.bucket;
      if (event.kind == Event::Kind::start) {
        double sum = 0;
        SmallVector<unsigned> members = getLaunch(event);
        for (unsigned member : members) {
          llvm::for_each(transfers[member].prologue, compute);
          sum += getSeconds(transfers[member]);
        }
        if (!members.empty())
          events.push_back({TimelineEvent::Kind::start, sum * slower, launch,
                            static_cast<unsigned>(transfer.channel), getLinks(transfer.channel)});
      } else {
        events.push_back({TimelineEvent::Kind::wait, 0, launch});
        llvm::for_each(transfer.epilogue, compute);
      }
    }
    if (slot < fixed.size())
      compute(fixed[slot]);
  }
  return fsdp::simulate(events, transfers.size());
}

double BlockSchedule::getUnscheduled() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// Seconds of the commands that move with a collective.
double BlockSchedule::getMovedSeconds(const Transfer &transfer) const {
  double sum = 0;
  for (ArrayRef<unsigned> moved : {ArrayRef(transfer.prologue), ArrayRef(transfer.epilogue)})
    for (unsigned command : moved)
      sum += seconds[command];
  return sum;
}

double BlockSchedule::getLowerBound() const {
  double all = time.back();
  std::map<unsigned, SmallVector<LinkJob>> jobs; // by links
  for (const Transfer &transfer : transfers) {
    // What moves with others is before or behind this one where their windows are; in a slot that
    // they share, either.
    double head = time[transfer.earliest],
           tail = time.back() - time[std::max(transfer.earliest, transfer.latest)];
    for (const Transfer &other : transfers) {
      if (&other != &transfer && other.latest < transfer.earliest)
        head += getMovedSeconds(other);
      if (&other != &transfer && other.earliest > transfer.latest)
        tail += getMovedSeconds(other);
    }
    for (unsigned command : transfer.prologue)
      head += seconds[command];
    for (unsigned command : transfer.epilogue)
      tail += seconds[command];
    jobs[getLinks(transfer.channel)].push_back({head, getSeconds(transfer), tail});
    all += getMovedSeconds(transfer);
  }
  double bound = all;
  for (auto &[links, work] : jobs)
    bound = std::max(bound, fsdp::getLowerBound(all, work));
  return bound;
}

/// Gives the command of a transfer its channel, and what is told of it.
Operation *BlockSchedule::startTransfer(const Transfer &transfer, double seconds, double exposed,
                                        StringRef limit, int64_t &nextId) const {
  Operation *op = graph.getCommands()[transfer.command];
  Builder b(op->getContext());
  if (auto copy = dyn_cast<CopyOp>(op))
    setInFlight(copy, nextId++, transfer.channel);
  else
    cast<CollectiveOp>(op).setChannel(transfer.channel);
  op->setAttr(secondsAttr, b.getF64FloatAttr(seconds));
  op->setAttr(exposedAttr, b.getF64FloatAttr(exposed));
  if (!limit.empty())
    op->setAttr(limitAttr, b.getStringAttr(limit));
  return op;
}

void BlockSchedule::applyInOrder(int64_t &nextId) const {
  for (const Transfer &transfer : transfers) {
    Operation *op = startTransfer(transfer, transfer.seconds, transfer.seconds, "memory", nextId);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    WaitOp::create(b, op->getLoc(), *getInFlightId(op));
  }
}

void BlockSchedule::apply(Block &block, int64_t &nextId) const {
  OpBuilder b(block.getParentOp()->getContext());
  auto append = [&](Operation *op) { op->moveBefore(&block, block.end()); };
  Timeline line = simulate();
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    for (const Event &event : here) {
      const Transfer &transfer = transfers[event.transfer];
      Operation *op = graph.getCommands()[transfer.command];
      if (event.kind == Event::Kind::start) {
        for (unsigned member : getLaunch(event))
          for (unsigned command : transfers[member].prologue)
            append(graph.getCommands()[command]);
        append(startTransfer(transfer, getSeconds(transfer), getExposed(transfer, line),
                             transfer.limit, nextId));
      } else {
        b.setInsertionPointToEnd(&block);
        WaitOp::create(b, op->getLoc(), *getInFlightId(op));
        for (unsigned command : transfer.epilogue)
          append(graph.getCommands()[command]);
      }
    }
    if (slot < fixed.size())
      append(graph.getCommands()[fixed[slot]]);
  }
}
