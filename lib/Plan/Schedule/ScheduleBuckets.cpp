//===- ScheduleBuckets.cpp - Buckets of collectives -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   gather a  S=====W            gathers a, b        SS=========W   W
//   gather b        S=====W  =>
//
//   reduce c  S====W             reductions c, d     .....SS========WW
//   reduce d       S====W
//
// If collectives of the same kind and over the same axes start directly one after another, they
// become one launch. A launch has the latency of a single collective. Each collective of a launch
// keeps its own buffers, results and wait.
//
// 1. Visit gathers in the order of their channel. A gather joins the launch of the preceding
//    gathers if the source of the gather is complete when that launch starts, and if the memory
//    limit allows the earlier start.
// 2. Visit reductions from the last to the first. A reduction joins the launch of the following
//    reductions if nothing needs its result before the waits of these reductions, and if the memory
//    limit allows the later wait.
// 3. The total size of the collectives of a launch is never more than `bucketBytes` bytes.
// 4. A transfer that starts directly after another transfer of its kind has no latency of its own.
//    The two starts may be adjacent because of steps 1 and 2, or because a kernel needs both.
//
// A launch is done when all its transfers are done. Takes O(collectives²) time. If the options
// limit how many gathers may start early (prefetch), no gather joins another gather. A gather that
// joined would start earlier than the limit allows.
//
//===----------------------------------------------------------------------===//

#include "Schedule/ScheduleSolver.h"
#include "fsdp/Analysis/Schedule.h"

using namespace mlir;
using namespace mlir::fsdp;

bool ScheduleSolver::isAlike(const Transfer &a, const Transfer &b) const {
  return a.alike != none && a.alike == b.alike && a.channel == b.channel;
}

/// Returns true if `transfer` may only start after the wait for `other`.
bool ScheduleSolver::needs(const Transfer &transfer, const Transfer &other) const {
  auto follows = [&](unsigned command) {
    return llvm::any_of(problem[command].before, [&](unsigned earlier) {
      return !problem.isFixed(earlier) && problem[earlier].home == problem[other.command].home;
    });
  };
  return follows(transfer.command) || llvm::any_of(transfer.prologue, follows);
}

/// Returns true if `transfer` may only start after the wait for some other transfer.
bool ScheduleSolver::followsTransfers(const Transfer &transfer) const {
  auto follows = [&](unsigned command) {
    return llvm::any_of(problem[command].before, [&](unsigned earlier) {
      return !problem.isFixed(earlier) && problem[earlier].home != problem[transfer.command].home;
    });
  };
  return follows(transfer.command) || llvm::any_of(transfer.prologue, follows);
}

/// Returns the duration of a transfer in seconds. The duration includes the latency only if the
/// transfer is the first of its launch.
double ScheduleSolver::getSeconds(const Transfer &transfer) const {
  return transfer.seconds - (transfer.joins ? transfer.latency : 0);
}

void ScheduleSolver::markLaunches() {
  for (auto [slot, here] : llvm::enumerate(orderEvents())) {
    // The transfer of the previous event if the previous event is a start, otherwise null.
    const Transfer *previous = nullptr;
    for (const Event &event : here) {
      Transfer &transfer = transfers[event.index];
      if (event.kind == Event::Kind::wait) {
        previous = nullptr;
        continue;
      }
      bool follows = llvm::all_of(
          getLaunch(event), [&](unsigned member) { return transfers[member].prologue.empty(); });
      transfer.joins = previous && follows && isAlike(*previous, transfer);
      previous = &transfer;
    }
  }
}

SmallVector<unsigned> ScheduleSolver::getBucket(unsigned leader) const {
  SmallVector<unsigned> bucket;
  for (auto [index, transfer] : llvm::enumerate(transfers))
    if (transfer.bucket == leader)
      bucket.push_back(index);
  llvm::sort(bucket, [&](unsigned a, unsigned b) {
    return std::make_pair(transfers[a].wait, a) < std::make_pair(transfers[b].wait, b);
  });
  return bucket;
}

bool ScheduleSolver::joinGather(Transfer &transfer, const Transfer &first,
                                const ScheduleLimits &limits) {
  unsigned sources = getEndOfSources(transfer),
           home = std::min(transfer.start, problem[transfer.command].slot);
  if (limits.forwardPrefetch >= 0 || limits.backwardPrefetch >= 0 ||
      transfer.isEarly != first.isEarly || transfer.earliest > first.start ||
      (followsTransfers(transfer) && sources >= first.start) || first.start > transfer.start)
    return false;
  if (limits.bytes > 0 && home > first.start &&
      limitByMemory(transfer, home, first.start, /*downwards=*/true, limits.bytes) > first.start)
    return false;
  if (home > first.start)
    addBytes(first.start, home, transfer.bytes);
  transfer.start = first.start;
  return true;
}

bool ScheduleSolver::joinReduction(Transfer &transfer, const Transfer &last,
                                   const ScheduleLimits &limits) {
  unsigned wait = std::max(transfer.wait, last.start);
  bool isNeeded = wait > transfer.latest;
  for (const Transfer &other : transfers)
    isNeeded |= needs(other, transfer) && other.start <= last.start;
  if (isNeeded || transfer.start > last.start)
    return false;
  if (limits.bytes > 0 && wait > transfer.wait &&
      limitByMemory(transfer, transfer.wait, wait, /*downwards=*/false, limits.bytes) < wait)
    return false;
  addBytes(transfer.wait, wait, transfer.bytes);
  transfer.start = last.start;
  transfer.wait = wait;
  return true;
}

void ScheduleSolver::formBuckets(const ScheduleLimits &limits) {
  if (limits.bucketBytes <= 0)
    return;
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, transfers.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::make_pair(transfers[a].wait, a) < std::make_pair(transfers[b].wait, b);
  });
  for (int64_t channel : {gatherChannel, reduceChannel}) {
    bool isGather = channel == gatherChannel;
    SmallVector<unsigned> bucket;
    int64_t bytes = 0;
    auto visit = [&](unsigned index) {
      Transfer &transfer = transfers[index];
      if (transfer.channel != channel)
        return;
      bool fits = !bucket.empty() && bytes + transfer.sentBytes <= limits.bucketBytes;
      fits = fits && llvm::all_of(bucket, [&](unsigned member) {
               return isAlike(transfers[member], transfer) && !needs(transfer, transfers[member]) &&
                      !needs(transfers[member], transfer);
             });
      if (!fits || !(isGather ? joinGather(transfer, transfers[bucket.front()], limits)
                              : joinReduction(transfer, transfers[bucket.front()], limits))) {
        bucket.clear();
        bytes = 0;
      }
      bucket.push_back(index);
      bytes += transfer.sentBytes;
      transfer.bucket = bucket.front();
    };
    if (isGather)
      llvm::for_each(order, visit);
    else
      llvm::for_each(llvm::reverse(order), visit);
  }
}
