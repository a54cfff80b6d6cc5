//===- ScheduleSolver.cpp - Places for the transfers of a block -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gathers are late transfers: they start as late as possible without a stall. Reductions are early
// transfers: they end as early as possible. Thus the transfers of both kinds hold buffers for the
// shortest time. A copy between the arenas is late if a command waits for the copied data. A copy
// is early if the memory of its source becomes free after the copy.
//
// 1. Place the early transfers one by one. The next transfer to place is the early transfer that
//    can start first. An early transfer begins when its source is complete and the previous
//    transfer on its channel is done. The wait is placed in the first slot after the end of the
//    transfer.
// 2. Place the late transfers in reverse order: the transfer that is needed last is placed first. A
//    late transfer has to end before a command needs its result, and before the next transfer on
//    its channel begins. It starts at the last slot that satisfies both conditions. A transfer
//    whose result no command of the block reads ends as early as possible.
// 3. Do not extend a transfer over a slot at which memory would then exceed the limit. Also do not
//    extend it if more transfers would then be in flight than the options allow. While a kernel
//    runs, only data of the next kernel may be read from the rank's file, and only data of the
//    previous kernel may be written to the file. Make the starts of collectives adjacent if they
//    may become one launch (ScheduleBuckets.cpp).
// 4. Within a slot, the starts of transfers whose sources are ready precede the waits. A transfer
//    that needs the result of another transfer starts after the wait for this result.
//
// The time of a slot is the sum of the compute times of the commands before the slot. Stalls are
// not yet known and therefore not included. Instead, the factor `slack` lengthens the transfers.
// Takes O(commands + transfers²) time.
//
//===----------------------------------------------------------------------===//

#include "Schedule/ScheduleSolver.h"
#include "fsdp/Analysis/Schedule.h"
#include <map>

using namespace mlir;
using namespace mlir::fsdp;

ScheduleSolver::ScheduleSolver(const ScheduleProblem &problem) : problem(problem) {
  for (const ScheduleProblem::Transfer &transfer : problem.getTransfers())
    transfers.push_back(Transfer(transfer));
}

void ScheduleSolver::addBytes(unsigned from, unsigned to, int64_t bytes) {
  for (unsigned slot = from; slot < to; ++slot)
    extra[slot] += bytes;
}

/// Returns how far a transfer can be extended from slot `from` towards slot `to`. At each fixed
/// command over which the transfer is extended, memory must have space for the transfer's bytes.
unsigned ScheduleSolver::limitByMemory(const Transfer &transfer, unsigned from, unsigned to,
                                       bool downwards, int64_t bytes) const {
  auto fits = [&](unsigned slot) {
    return problem[problem.getFixed()[slot]].live + extra[slot] + transfer.bytes <= bytes;
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

/// Returns the slot of the wait for a transfer. For a late transfer that is not placed yet, returns
/// the first slot at which the transfer can have ended. `known` has the slots of such transfers,
/// because many chains of transfers can end at the same one.
unsigned ScheduleSolver::getEnd(const Transfer &transfer, KnownEnds &known) const {
  if (transfer.isPlaced || transfer.isEarly)
    return transfer.wait;
  if (auto found = known.find(&transfer); found != known.end())
    return found->second;
  unsigned slot = std::max(transfer.earliest, getEndOfSources(transfer, known));
  double end = problem.getTime(slot) + transfer.seconds;
  while (slot < transfer.latest && problem.getTime(slot) < end)
    ++slot;
  known[&transfer] = slot;
  return slot;
}

unsigned ScheduleSolver::getEndOfSources(const Transfer &transfer, KnownEnds &known) const {
  unsigned end = 0;
  auto follow = [&](unsigned command) {
    for (unsigned earlier : problem[command].before)
      if (!problem.isFixed(earlier) && problem[earlier].home != problem[transfer.command].home)
        end = std::max(end, getEnd(transfers[problem[earlier].home], known));
  };
  follow(transfer.command);
  llvm::for_each(transfer.prologue, follow);
  return end;
}

/// Returns the slot of the last of the waits that must precede the start of `transfer`.
unsigned ScheduleSolver::getEndOfSources(const Transfer &transfer) const {
  KnownEnds known;
  return getEndOfSources(transfer, known);
}

/// Returns the latest slot for the wait for `transfer`. If a start that must follow this wait is in
/// an earlier slot, returns the slot of the first such start.
unsigned ScheduleSolver::getBeginOfReaders(const Transfer &transfer) const {
  unsigned begin = transfer.latest;
  auto precede = [&](unsigned command) {
    for (unsigned later : problem[command].after)
      if (!problem.isFixed(later) && problem[later].home != problem[transfer.command].home)
        begin = std::min(begin, transfers[problem[later].home].start);
  };
  precede(transfer.command);
  llvm::for_each(transfer.prologue, precede);
  return begin;
}

/// Among the early transfers that are not placed yet, returns the one that can start first. Returns
/// null if all early transfers are placed.
ScheduleSolver::Transfer *ScheduleSolver::findNextEarly() {
  Transfer *next = nullptr;
  for (Transfer &transfer : transfers) {
    if (!transfer.isEarly || transfer.isPlaced)
      continue;
    auto isKnown = [&](unsigned command) {
      return llvm::all_of(problem[command].before, [&](unsigned earlier) {
        if (problem.isFixed(earlier) || problem[earlier].home == problem[transfer.command].home)
          return true;
        const Transfer &other = transfers[problem[earlier].home];
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

/// Returns the latest slot for the wait of a copy to a file: at most `latest`. The copy must end
/// before the next kernel that writes data for the file is done, so that the data of at most one
/// kernel is in flight.
unsigned ScheduleSolver::limitByFile(const Transfer &transfer, unsigned latest) const {
  if (transfer.channel != toFileChannel)
    return latest;
  for (const Transfer &other : transfers)
    if (other.channel == toFileChannel && other.earliest > transfer.start)
      latest = std::min(latest, other.earliest);
  return latest;
}

void ScheduleSolver::placeEarly(const ScheduleLimits &limits) {
  std::map<int64_t, double> free; // seconds at which each channel becomes free
  while (Transfer *next = findNextEarly()) {
    Transfer &transfer = *next;
    transfer.isPlaced = true;
    double begin = std::max(problem.getTime(transfer.start), free[transfer.channel]);
    free[transfer.channel] = begin + transfer.seconds;
    double end = begin + transfer.seconds * limits.slack;
    unsigned latest = std::max(transfer.start, transfer.latest),
             bound = limitByFile(transfer, latest), wait = transfer.start;
    while (wait < bound && problem.getTime(wait) < end)
      ++wait;
    transfer.limit = problem.getTime(wait) >= end ? "" : bound < latest ? "prefetch" : "first use";
    unsigned home = std::max(transfer.start, problem[transfer.command].slot);
    if (limits.bytes > 0 && wait > home)
      if (unsigned most = limitByMemory(transfer, home, wait, false, limits.bytes); most < wait) {
        wait = most;
        transfer.limit = "memory";
      }
    transfer.wait = wait;
    addBytes(std::min(home, wait), wait, transfer.bytes);
  }
}

/// Places a late transfer. `before` holds those late transfers of the same channel that are needed
/// earlier than `transfer`. `next` is the time at which the channel becomes busy with the transfers
/// that are needed later.
void ScheduleSolver::placeLate(Transfer &transfer, ArrayRef<Transfer *> before, double &next,
                               const ScheduleLimits &limits) {
  transfer.wait = getBeginOfReaders(transfer);
  double begin = std::min(problem.getTime(transfer.wait), next) - transfer.seconds * limits.slack;
  next = std::min(problem.getTime(transfer.wait), next) - transfer.seconds;
  unsigned slot = transfer.wait, home = problem[transfer.command].slot;
  unsigned floor = std::max(transfer.earliest, std::min(getEndOfSources(transfer), transfer.wait));
  while (slot > floor && problem.getTime(slot) > begin)
    --slot;
  transfer.limit = problem.getTime(slot) > begin ? (floor == 0 ? "beginning" : "source") : "";
  bool isCopy = transfer.channel != gatherChannel;
  int64_t ahead = isCopy                ? limits.copyPrefetch
                  : transfer.isBackward ? limits.backwardPrefetch
                                        : limits.forwardPrefetch;
  if (ahead >= 0) {
    // Start only after the wait for the transfer that is `ahead` positions earlier on the channel.
    size_t index = before.size();
    unsigned least = ahead == 0                            ? transfer.wait
                     : index >= static_cast<size_t>(ahead) ? before[index - ahead]->latest
                                                           : 0;
    if (least > slot) {
      slot = std::min(least, transfer.wait);
      transfer.limit = "prefetch";
    }
  }
  // Start only after the end of the transfer for the previous kernel, so that two buffers suffice.
  if (transfer.channel == fromFileChannel)
    for (Transfer *other : llvm::reverse(before))
      if (other->latest < transfer.latest) {
        if (other->latest > slot)
          transfer.limit = "prefetch";
        slot = std::max(slot, std::min(other->latest, transfer.wait));
        break;
      }
  // The wait may be before the original slot of the transfer, because readers may have moved
  // together with other transfers.
  if (limits.bytes > 0 && slot < home)
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

void ScheduleSolver::placeLate(const ScheduleLimits &limits) {
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

void ScheduleSolver::place(const ScheduleLimits &limits) {
  extra.assign(problem.getFixed().size() + 1, 0);
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

int64_t ScheduleSolver::getPeak() const {
  int64_t peak = 0;
  for (auto [slot, command] : llvm::enumerate(problem.getFixed()))
    peak = std::max(peak, problem[command].live + extra[slot]);
  return peak;
}

//===----------------------------------------------------------------------===//
// Step 4
//===----------------------------------------------------------------------===//

SmallVector<SmallVector<ScheduleSolver::Event>> ScheduleSolver::orderEvents() const {
  SmallVector<SmallVector<Event>> order(problem.getFixed().size() + 1),
      pending(problem.getFixed().size() + 1);
  SmallVector<unsigned> byWait = llvm::to_vector(llvm::seq<unsigned>(0, transfers.size()));
  llvm::sort(byWait, [&](unsigned a, unsigned b) {
    return std::make_pair(transfers[a].wait, a) < std::make_pair(transfers[b].wait, b);
  });
  // On each channel, the starts have the same order as the waits.
  for (unsigned index : byWait)
    if (transfers[index].bucket == none ||
        transfers[index].bucket == index) // the other members of a bucket start together with its
                                          // first member
      pending[transfers[index].start].push_back({Event::Kind::start, index});
  for (unsigned index : byWait)
    pending[transfers[index].wait].push_back({Event::Kind::wait, index});
  SmallVector<bool> started(transfers.size(), false), waited(transfers.size(), false);
  auto isReady = [&](const Event &event) {
    const Transfer &transfer = transfers[event.index];
    if (event.kind == Event::Kind::wait)
      return static_cast<bool>(started[event.index]);
    auto isDone = [&](unsigned command) {
      return llvm::all_of(problem[command].before, [&](unsigned earlier) {
        return problem.isFixed(earlier) || problem[earlier].home == event.index ||
               waited[problem[earlier].home];
      });
    };
    return isDone(transfer.command) && llvm::all_of(transfer.prologue, isDone);
  };
  auto areReady = [&](const Event &event) {
    if (event.kind == Event::Kind::wait)
      return isReady(event);
    return llvm::all_of(getBucket(event.index),
                        [&](unsigned member) { return isReady({event.kind, member}); }) &&
           isReady(event);
  };
  for (auto [slot, events] : llvm::enumerate(pending))
    while (!events.empty()) {
      auto next = llvm::find_if(events, areReady);
      // If no event is ready, the transfers wait for each other. verify() reports this later.
      if (next == events.end())
        next = events.begin();
      SmallVector<unsigned> members =
          next->kind == Event::Kind::start ? getBucket(next->index) : SmallVector<unsigned>();
      if (members.empty())
        members.push_back(next->index);
      for (unsigned member : members) {
        (next->kind == Event::Kind::start ? started : waited)[member] = true;
        order[slot].push_back({next->kind, member});
      }
      events.erase(next);
    }
  return order;
}

llvm::SmallVector<ScheduleEvent> ScheduleSolver::getOrder() const {
  SmallVector<Event> order;
  auto compute = [&](unsigned command) { order.push_back({Event::Kind::compute, command}); };
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    for (const Event &event : here) {
      if (event.kind == Event::Kind::start)
        for (unsigned member : getLaunch(event))
          llvm::for_each(transfers[member].prologue, compute);
      order.push_back(event);
      if (event.kind == Event::Kind::wait)
        llvm::for_each(transfers[event.index].epilogue, compute);
    }
    if (slot < problem.getFixed().size())
      compute(problem.getFixed()[slot]);
  }
  return order;
}

/// Returns for how many seconds commands wait for the given transfer. If commands wait for a
/// launch, its seconds are divided among its transfers in proportion to their durations.
double ScheduleSolver::getExposed(unsigned index, const Timeline &line) const {
  const Transfer &transfer = transfers[index];
  if (transfer.bucket == none)
    return line.exposed[index];
  double sum = 0;
  for (unsigned member : getBucket(transfer.bucket))
    sum += getSeconds(transfers[member]);
  return sum > 0 ? line.exposed[transfer.bucket] * getSeconds(transfer) / sum : 0;
}

/// Returns the transfers that start together at an event. If the event is the first start of a
/// bucket, these are all members of the bucket. For the other starts of the bucket, the list is
/// empty.
SmallVector<unsigned> ScheduleSolver::getLaunch(const Event &event) const {
  const Transfer &transfer = transfers[event.index];
  if (transfer.bucket == none)
    return {event.index};
  SmallVector<unsigned> bucket = getBucket(transfer.bucket);
  return bucket.front() == event.index ? bucket : SmallVector<unsigned>();
}

Timeline ScheduleSolver::simulate(double slower) const {
  SmallVector<TimelineEvent> events;
  for (const Event &event : getOrder()) {
    if (event.kind == Event::Kind::compute) {
      const ScheduleProblem::Command &command = problem[event.index];
      TimelineEvent &launch =
          events.emplace_back(TimelineEvent{TimelineEvent::Kind::compute, command.seconds});
      launch.busySeconds = command.busySeconds;
      launch.memorySeconds = command.memorySeconds;
      continue;
    }
    const Transfer &transfer = transfers[event.index];
    unsigned launch = transfer.bucket == none ? event.index : transfer.bucket;
    SmallVector<unsigned> members = getLaunch(event);
    double sum = 0;
    for (unsigned member : members)
      sum += getSeconds(transfers[member]);
    if (event.kind == Event::Kind::wait)
      events.push_back({TimelineEvent::Kind::wait, 0, launch});
    else if (!members.empty()) {
      events.push_back({TimelineEvent::Kind::start, sum * slower, launch,
                        static_cast<unsigned>(transfer.channel), getLinks(transfer.channel)});
      events.back().multiprocessors = transfer.multiprocessors;
    }
  }
  return fsdp::simulate(events, transfers.size(), problem.getMultiprocessors());
}

double ScheduleSolver::getLowerBound() const {
  double all = problem.getEndTime();
  std::map<unsigned, SmallVector<LinkJob>> jobs; // jobs of each link, by number of the link
  for (const Transfer &transfer : transfers) {
    // The commands that move with another transfer precede this transfer if the whole window of the
    // other transfer is before the window of this transfer. They follow this transfer if the whole
    // window of the other transfer is after the window of this transfer. If the two windows share a
    // slot, the order is not known.
    double head = problem.getTime(transfer.earliest),
           tail =
               problem.getEndTime() - problem.getTime(std::max(transfer.earliest, transfer.latest));
    for (const Transfer &other : transfers) {
      if (&other != &transfer && other.latest < transfer.earliest)
        head += problem.getMovedSeconds(other);
      if (&other != &transfer && other.earliest > transfer.latest)
        tail += problem.getMovedSeconds(other);
    }
    for (unsigned command : transfer.prologue)
      head += problem[command].seconds;
    for (unsigned command : transfer.epilogue)
      tail += problem[command].seconds;
    jobs[getLinks(transfer.channel)].push_back({head, getSeconds(transfer), tail});
    all += problem.getMovedSeconds(transfer);
  }
  double bound = all;
  for (auto &[links, work] : jobs)
    bound = std::max(bound, fsdp::getLowerBound(all, work));
  return bound;
}
