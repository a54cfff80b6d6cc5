//===- BlockSchedule.cpp - Starts and waits of one block --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gathers start as late as hides them, reductions end as early as they can: both hold
// their buffers no longer than that takes.
//
//   slots      0    1    2    3    4    5
//   compute    | C0 | C1 | C2 | C3 | C4 |
//   gather              S========W            read by C3: back from there by its time
//   reduce                  S======W          written by C1: forward from there
//
//  1. Commands that only prepare a gather (the cast of a shard) move with its start, those that
//     only take up a reduction (its cast, a norm of it) with its wait. All others are fixed,
//     and make the slots.
//  2. Windows: a start is behind all fixed commands that it must follow, a wait before all
//     that must follow it.
//  3. Reductions, the one that can start first of all the next: each begins when its source is whole and the
//     one before it is done, and is waited for at the first slot behind its end.
//  4. Gathers from the last to the first, by who is needed when: each ends at its window's end
//     or where the next one begins, and starts at the last slot that is early enough.
//     A gather that nothing here reads ends as early as it can, like a reduction.
//  5. Each stops where memory would pass the limit, or more gathers be ahead than allowed.
//  6. In a slot: what can start starts, then waits; a collective that needs another one's result
//     starts behind its wait.
//
// Time in a slot is that of the compute before it; stalls are not known yet, which `slack`
// makes up for. O(commands + collectives²).
//
//===----------------------------------------------------------------------===//

#include "BlockSchedule.h"
#include "fsdp/Analysis/Commands.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

/// Channels of gathers and of reductions.
static constexpr int64_t gatherChannel = 1, reduceChannel = 2;

static bool isReduction(CollectiveOp op) {
  return op.getKind() == CollectiveKind::reduce_scatter || op.getKind() == CollectiveKind::all_reduce;
}

BlockSchedule::BlockSchedule(const CommandGraph &graph, llvm::function_ref<double(Operation *)> getSeconds,
                             ArrayRef<int64_t> live)
    : graph(graph), live(live) {
  roles.assign(graph.getCommands().size(), Role::fixed);
  homes.assign(graph.getCommands().size(), none);
  findCollectives(getSeconds);
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

void BlockSchedule::findCollectives(llvm::function_ref<double(Operation *)> getSeconds) {
  llvm::DenseSet<Attribute> gathered;
  for (auto [number, command] : llvm::enumerate(graph.getCommands())) {
    seconds.push_back(getSeconds(command));
    auto op = dyn_cast<CollectiveOp>(command);
    if (!op || op.getChannel())
      continue;
    Collective collective;
    collective.command = number;
    collective.isGather = !isReduction(op);
    collective.seconds = seconds.back();
    bool isPiece = op.getSource().getBuffer() == op.getTarget().getBuffer();
    collective.bytes = collective.isGather ? op.getTarget().getBytes() : isPiece ? 0 : op.getSource().getBytes();
    collective.isBackward = collective.isGather && op.getUnitAttr() && !gathered.insert(op.getUnitAttr()).second;
    roles[number] = Role::collective;
    homes[number] = collectives.size();
    collectives.push_back(collective);
  }
}

/// Launches, copies and fills before a gather that nothing in front of it has to wait for: what is behind the gather stays
/// behind them wherever they go.
void BlockSchedule::findPrologues() {
  for (unsigned index = 0; index < collectives.size(); ++index) {
    Collective &collective = collectives[index];
    if (!collective.isGather)
      continue;
    for (unsigned command : graph.getBefore(collective.command)) {
      if (roles[command] != Role::fixed || isa<LoopOp>(graph.getCommands()[command]) ||
          graph.getBehind(command).front() != collective.command)
        continue;
      roles[command] = Role::prologue;
      homes[command] = index;
      collective.prologue.push_back(command);
    }
  }
}

/// Behind the last fixed command that it must follow.
unsigned BlockSchedule::getSourceEnd(const Collective &collective) const {
  unsigned end = 0;
  for (unsigned earlier : graph.getBefore(collective.command))
    if (roles[earlier] == Role::fixed)
      end = std::max(end, earlier + 1);
  return end;
}

/// Launches behind a reduction that depend on no other collective and whose results are not needed at once.
void BlockSchedule::findEpilogues() {
  for (unsigned command = 0; command < roles.size(); ++command) {
    auto launch = dyn_cast<LaunchOp>(graph.getCommands()[command]);
    if (!launch || roles[command] != Role::fixed)
      continue;
    unsigned home = none, lastFixed = 0;
    bool single = true;
    for (unsigned earlier : graph.getBefore(command)) {
      if (roles[earlier] == Role::fixed)
        lastFixed = std::max(lastFixed, earlier + 1);
      if (roles[earlier] == Role::fixed || roles[earlier] == Role::prologue)
        continue;
      unsigned other = homes[earlier];
      single &= (home == none || home == other) && !collectives[other].isGather;
      home = other;
    }
    // Wherever the wait will be, what else it reads is there.
    if (home == none || !single || lastFixed > getSourceEnd(collectives[home]))
      continue;
    roles[command] = Role::epilogue;
    homes[command] = home;
    collectives[home].epilogue.push_back(command);
  }
}

void BlockSchedule::findWindows() {
  for (Collective &collective : llvm::reverse(collectives)) {
    collective.earliest = 0;
    collective.latest = fixed.size();
    auto follow = [&](unsigned command) {
      for (unsigned earlier : graph.getBefore(command))
        if (roles[earlier] == Role::fixed)
          collective.earliest = std::max(collective.earliest, slots[earlier] + 1);
    };
    follow(collective.command);
    llvm::for_each(collective.prologue, follow);
    auto precede = [&](unsigned command) {
      for (unsigned later : graph.getBehind(command)) {
        if (roles[later] == Role::fixed)
          collective.latest = std::min(collective.latest, slots[later]);
        else if (homes[later] != homes[collective.command]) // of a collective behind, whose window is known
          collective.latest = std::min(collective.latest, collectives[homes[later]].latest);
      }
    };
    precede(collective.command);
    llvm::for_each(collective.prologue, precede);
    llvm::for_each(collective.epilogue, precede);
    collective.isEarly = !collective.isGather || collective.latest == fixed.size();
  }
}

//===----------------------------------------------------------------------===//
// Steps 3 to 5
//===----------------------------------------------------------------------===//

void BlockSchedule::addBytes(unsigned from, unsigned to, int64_t bytes) {
  for (unsigned slot = from; slot < to; ++slot)
    extra[slot] += bytes;
}

/// The farthest slot from `from` to `to` up to which `bytes` more fit at each fixed command between.
unsigned BlockSchedule::limitByMemory(const Collective &collective, unsigned from, unsigned to, bool downwards,
                                      int64_t bytes) const {
  auto fits = [&](unsigned slot) { return live[fixed[slot]] + extra[slot] + collective.bytes <= bytes; };
  unsigned slot = from;
  if (downwards)
    while (slot > to && fits(slot - 1))
      --slot;
  else
    while (slot < to && fits(slot))
      ++slot;
  return slot;
}

/// The slot of the last wait that `collective` has to follow.
unsigned BlockSchedule::getEndOfSources(const Collective &collective) const {
  unsigned end = 0;
  auto follow = [&](unsigned command) {
    for (unsigned earlier : graph.getBefore(command))
      if (roles[earlier] != Role::fixed && homes[earlier] != homes[collective.command])
        end = std::max(end, collectives[homes[earlier]].wait);
  };
  follow(collective.command);
  llvm::for_each(collective.prologue, follow);
  return end;
}

/// The slot of the first start of a gather that has to follow `collective`.
unsigned BlockSchedule::getBeginOfReaders(const Collective &collective) const {
  unsigned begin = collective.latest;
  for (unsigned later : graph.getBehind(collective.command))
    if (roles[later] != Role::fixed && homes[later] != homes[collective.command])
      begin = std::min(begin, collectives[homes[later]].start);
  return begin;
}

/// The early collective that can start first, of those that are not placed; null when all are.
BlockSchedule::Collective *BlockSchedule::findNextEarly(ArrayRef<bool> placed) {
  Collective *next = nullptr;
  for (unsigned index = 0; index < collectives.size(); ++index) {
    Collective &collective = collectives[index];
    if (!collective.isEarly || placed[index])
      continue;
    auto isKnown = [&](unsigned command) {
      return llvm::all_of(graph.getBefore(command), [&](unsigned earlier) {
        unsigned home = homes[earlier];
        return roles[earlier] == Role::fixed || home == index || placed[home] || !collectives[home].isEarly;
      });
    };
    if (!isKnown(collective.command) || !llvm::all_of(collective.prologue, isKnown))
      continue;
    collective.start = std::max(collective.earliest, getEndOfSources(collective));
    if (!next || collective.start < next->start)
      next = &collective;
  }
  return next;
}

void BlockSchedule::placeReductions(const ScheduleLimits &limits) {
  SmallVector<bool> placed(collectives.size(), false);
  double free[2] = {0, 0}; // when the channels are
  while (Collective *next = findNextEarly(placed)) {
    Collective &collective = *next;
    placed[next - collectives.data()] = true;
    double begin = std::max(time[collective.start], free[collective.isGather]);
    free[collective.isGather] = begin + collective.seconds;
    double end = begin + collective.seconds * limits.slack;
    unsigned latest = std::max(collective.start, collective.latest), wait = collective.start;
    while (wait < latest && time[wait] < end)
      ++wait;
    collective.limit = time[wait] < end ? "first use" : "";
    unsigned home = std::max(collective.start, slots[collective.command]);
    if (limits.bytes > 0 && wait > home)
      if (unsigned most = limitByMemory(collective, home, wait, false, limits.bytes); most < wait) {
        wait = most;
        collective.limit = "memory";
      }
    collective.wait = wait;
    addBytes(std::min(home, wait), wait, collective.bytes);
  }
}

void BlockSchedule::placeGathers(const ScheduleLimits &limits) {
  SmallVector<Collective *> gathers;
  for (Collective &collective : collectives)
    if (!collective.isEarly)
      gathers.push_back(&collective);
  llvm::sort(gathers, [](Collective *a, Collective *b) {
    return std::make_pair(a->latest, a->command) < std::make_pair(b->latest, b->command);
  });
  double next = std::numeric_limits<double>::infinity(); // when the channel is needed for the gather behind
  for (size_t index = gathers.size(); index-- > 0;) {
    Collective &gather = *gathers[index];
    gather.wait = getBeginOfReaders(gather);
    double begin = std::min(time[gather.wait], next) - gather.seconds * limits.slack;
    next = std::min(time[gather.wait], next) - gather.seconds;
    unsigned slot = gather.wait, home = slots[gather.command], floor = std::max(gather.earliest, std::min(getEndOfSources(gather), gather.wait));
    while (slot > floor && time[slot] > begin)
      --slot;
    gather.limit = time[slot] > begin ? (floor == 0 ? "beginning" : "source") : "";
    int64_t ahead = gather.isBackward ? limits.backwardPrefetch : limits.forwardPrefetch;
    if (ahead >= 0) {
      // Not before the gather that is `ahead` places in front of it is waited for.
      unsigned least = ahead == 0 ? gather.wait : index >= static_cast<size_t>(ahead) ? gathers[index - ahead]->latest : 0;
      if (least > slot) {
        slot = std::min(least, gather.wait);
        gather.limit = "prefetch";
      }
    }
    if (limits.bytes > 0 && slot < home)
      if (unsigned least = limitByMemory(gather, home, slot, true, limits.bytes); least > slot) {
        slot = least;
        gather.limit = "memory";
      }
    gather.start = slot;
    addBytes(slot, std::max(home, slot), gather.bytes);
  }
}

void BlockSchedule::place(const ScheduleLimits &limits) {
  extra.assign(fixed.size() + 1, 0);
  for (Collective &collective : collectives)
    collective.start = collective.wait = collective.latest;
  placeReductions(limits);
  placeGathers(limits);
}

int64_t BlockSchedule::getPeak() const {
  int64_t peak = 0;
  for (auto [slot, command] : llvm::enumerate(fixed))
    peak = std::max(peak, live[command] + extra[slot]);
  return peak;
}

//===----------------------------------------------------------------------===//
// Step 6
//===----------------------------------------------------------------------===//

SmallVector<SmallVector<BlockSchedule::Event>> BlockSchedule::orderEvents() const {
  SmallVector<SmallVector<Event>> order(fixed.size() + 1), pending(fixed.size() + 1);
  SmallVector<unsigned> byWait = llvm::to_vector(llvm::seq<unsigned>(0, collectives.size()));
  llvm::sort(byWait, [&](unsigned a, unsigned b) {
    return std::make_pair(collectives[a].wait, a) < std::make_pair(collectives[b].wait, b);
  });
  // On one channel starts are in the order of the waits.
  for (unsigned index : byWait)
    pending[collectives[index].start].push_back({Event::Kind::start, index});
  for (unsigned index : byWait)
    pending[collectives[index].wait].push_back({Event::Kind::wait, index});
  SmallVector<bool> started(collectives.size(), false), waited(collectives.size(), false);
  auto isReady = [&](const Event &event) {
    const Collective &collective = collectives[event.collective];
    if (event.kind == Event::Kind::wait)
      return static_cast<bool>(started[event.collective]);
    auto isDone = [&](unsigned command) {
      return llvm::all_of(graph.getBefore(command), [&](unsigned earlier) {
        return roles[earlier] == Role::fixed || homes[earlier] == event.collective || waited[homes[earlier]];
      });
    };
    return isDone(collective.command) && llvm::all_of(collective.prologue, isDone);
  };
  for (auto [slot, events] : llvm::enumerate(pending))
    while (!events.empty()) {
      auto next = llvm::find_if(events, isReady);
      assert(next != events.end() && "collectives that wait for each other");
      (next->kind == Event::Kind::start ? started : waited)[next->collective] = true;
      order[slot].push_back(*next);
      events.erase(next);
    }
  return order;
}

Timeline BlockSchedule::simulate(double slower) const {
  SmallVector<TimelineEvent> events;
  auto compute = [&](unsigned command) { events.push_back({TimelineEvent::Kind::compute, seconds[command]}); };
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    for (const Event &event : here) {
      const Collective &collective = collectives[event.collective];
      if (event.kind == Event::Kind::start) {
        llvm::for_each(collective.prologue, compute);
        events.push_back({TimelineEvent::Kind::start, collective.seconds * slower, event.collective,
                          static_cast<unsigned>(collective.isGather ? gatherChannel : reduceChannel)});
      } else {
        events.push_back({TimelineEvent::Kind::wait, 0, event.collective});
        llvm::for_each(collective.epilogue, compute);
      }
    }
    if (slot < fixed.size())
      compute(fixed[slot]);
  }
  return fsdp::simulate(events, collectives.size());
}

double BlockSchedule::getUnscheduled() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

/// Seconds of the commands that move with a collective.
double BlockSchedule::getMovedSeconds(const Collective &collective) const {
  double sum = 0;
  for (ArrayRef<unsigned> moved : {ArrayRef(collective.prologue), ArrayRef(collective.epilogue)})
    for (unsigned command : moved)
      sum += seconds[command];
  return sum;
}

double BlockSchedule::getLowerBound() const {
  double all = time.back();
  SmallVector<LinkJob> jobs;
  for (const Collective &collective : collectives) {
    // What moves with others is before or behind this one where their windows are; in a slot that they share, either.
    double head = time[collective.earliest], tail = time.back() - time[std::max(collective.earliest, collective.latest)];
    for (const Collective &other : collectives) {
      if (&other != &collective && other.latest < collective.earliest)
        head += getMovedSeconds(other);
      if (&other != &collective && other.earliest > collective.latest)
        tail += getMovedSeconds(other);
    }
    for (unsigned command : collective.prologue)
      head += seconds[command];
    for (unsigned command : collective.epilogue)
      tail += seconds[command];
    jobs.push_back({head, collective.seconds, tail});
    all += getMovedSeconds(collective);
  }
  return fsdp::getLowerBound(all, jobs);
}

void BlockSchedule::apply(Block &block) const {
  OpBuilder b(block.getParentOp()->getContext());
  auto append = [&](Operation *op) { op->moveBefore(&block, block.end()); };
  Timeline line = simulate();
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    for (const Event &event : here) {
      const Collective &collective = collectives[event.collective];
      auto op = cast<CollectiveOp>(graph.getCommands()[collective.command]);
      if (event.kind == Event::Kind::start) {
        for (unsigned command : collective.prologue)
          append(graph.getCommands()[command]);
        append(op);
        op.setChannel(collective.isGather ? gatherChannel : reduceChannel);
        op->setAttr(secondsAttr, b.getF64FloatAttr(collective.seconds));
        op->setAttr(exposedAttr, b.getF64FloatAttr(line.exposed[event.collective]));
        if (!collective.limit.empty())
          op->setAttr(limitAttr, b.getStringAttr(collective.limit));
      } else {
        b.setInsertionPointToEnd(&block);
        WaitOp::create(b, op.getLoc(), op.getId());
        for (unsigned command : collective.epilogue)
          append(graph.getCommands()[command]);
      }
    }
    if (slot < fixed.size())
      append(graph.getCommands()[fixed[slot]]);
  }
}
