//===- ScheduleProblem.cpp - Windows in which transfers may run --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Roles: a command that only prepares a gather, such as the cast of a shard, moves with the
//    start of the gather. If a command, such as a cast or a norm, uses only the result of a
//    reduction or of a copy to the host, it moves with the wait for this transfer. All other
//    commands are fixed.
// 2. Windows: the start of a transfer follows all fixed commands on which the transfer depends. The
//    wait for the transfer precedes all fixed commands that depend on the transfer.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/ScheduleProblem.h"
#include "fsdp/Analysis/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::fsdp;
using llvm::formatv;

unsigned ScheduleProblem::addCommand(Kind kind, double seconds, int64_t live) {
  Command command;
  command.kind = kind;
  command.seconds = seconds;
  command.live = live;
  commands.push_back(command);
  return commands.size() - 1;
}

void ScheduleProblem::addDependence(unsigned earlier, unsigned later) {
  commands[later].before.push_back(earlier);
  if (earlier < commands.size())
    commands[earlier].after.push_back(later);
}

std::string ScheduleProblem::check() const {
  for (auto [number, command] : llvm::enumerate(commands)) {
    if (!std::isfinite(command.seconds) || command.seconds < 0)
      return formatv("command {0} takes {1} seconds", number, command.seconds);
    for (unsigned earlier : command.before)
      if (earlier >= number)
        return formatv("command {0} must follow command {1}, which is not before it", number,
                       earlier);
  }
  unsigned last = none;
  for (auto [number, transfer] : llvm::enumerate(transfers)) {
    if (transfer.command >= commands.size())
      return formatv("transfer {0} is no command", number);
    if (last != none && transfer.command <= last)
      return formatv("transfer {0} is not after the transfer before it", number);
    if (!(transfer.latency >= 0 && transfer.latency <= transfer.seconds))
      return formatv("transfer {0} takes {1} seconds, of which {2} are latency", number,
                     transfer.seconds, transfer.latency);
    last = transfer.command;
  }
  return "";
}

std::string ScheduleProblem::verify(llvm::ArrayRef<ScheduleEvent> order) const {
  llvm::SmallVector<bool> begun(commands.size(), false), done(commands.size(), false);
  for (const ScheduleEvent &event : order) {
    bool isCompute = event.kind == ScheduleEvent::Kind::compute;
    if (event.index >= (isCompute ? commands.size() : transfers.size()))
      return formatv("there is no {0} {1}", isCompute ? "command" : "transfer", event.index);
    unsigned command = isCompute ? event.index : transfers[event.index].command;
    if (isCompute == (commands[command].role == Role::transfer))
      return formatv("command {0} is a transfer", command);
    if (event.kind == ScheduleEvent::Kind::wait) {
      if (!begun[command] || done[command])
        return formatv("command {0} is waited for before it starts, or twice", command);
      done[command] = true;
      continue;
    }
    if (begun[command])
      return formatv("command {0} is there twice", command);
    for (unsigned earlier : commands[command].before)
      if (!done[earlier])
        return formatv("command {0} begins before command {1} is done", command, earlier);
    begun[command] = true;
    done[command] = isCompute;
  }
  if (auto missing = llvm::find(done, false); missing != done.end())
    return formatv("command {0} is not done", missing - done.begin());
  return "";
}

void ScheduleProblem::derive() {
  for (auto [index, transfer] : llvm::enumerate(transfers)) {
    commands[transfer.command].role = Role::transfer;
    commands[transfer.command].home = index;
  }
  findPrologues();
  findEpilogues();
  time.push_back(0);
  for (auto [number, command] : llvm::enumerate(commands)) {
    command.slot = fixed.size();
    if (command.role != Role::fixed)
      continue;
    fixed.push_back(number);
    time.push_back(time.back() + command.seconds);
  }
  findWindows();
}

/// Finds the commands that move with the start of a gather (prologues). A command is a prologue if
/// it is not a loop, and if the gather is the first command that depends on the command. A copy
/// that keeps a part of a buffer does not move, so that the buffer does not live until the gather.
void ScheduleProblem::findPrologues() {
  for (unsigned index = 0; index < transfers.size(); ++index) {
    Transfer &transfer = transfers[index];
    if (transfer.channel != gatherChannel)
      continue;
    for (unsigned command : commands[transfer.command].before) {
      if (commands[command].role != Role::fixed || commands[command].kind == Kind::loop ||
          commands[command].keepsPart || commands[command].after.front() != transfer.command)
        continue;
      commands[command].role = Role::prologue;
      commands[command].home = index;
      transfer.prologue.push_back(command);
    }
  }
}

/// Returns 1 + the index of the last fixed command on which the transfer depends, directly or
/// through other transfers. Returns 0 if the transfer depends on no fixed command.
unsigned ScheduleProblem::getSourceEnd(const Transfer &transfer) const {
  unsigned end = 0;
  for (unsigned earlier : commands[transfer.command].before) {
    if (commands[earlier].role == Role::fixed)
      end = std::max(end, earlier + 1);
    else if (commands[earlier].role == Role::transfer)
      end = std::max(end, getSourceEnd(transfers[commands[earlier].home]));
  }
  return end;
}

/// Finds epilogues: launches that depend on a reduction or on a copy to the host, and copies that
/// depend on such a launch. An epilogue depends on no other transfer. It also depends on no fixed
/// command after command c, the last fixed command on which its transfer depends. A kernel of
/// activations is no epilogue if it is so far from its transfer that the wait need not move past
/// it. Otherwise a recomputed kernel of a unit could move to the forward, where nothing reads it.
void ScheduleProblem::findEpilogues() {
  const double mostSlack = std::end(scheduleSlacks)[-1];
  llvm::SmallVector<double> own(transfers.size(), 0), begins(transfers.size(), 0);
  double now = 0; // seconds of all commands up to this one that are no transfers
  for (unsigned command = 0; command < commands.size(); ++command) {
    double begin = now;
    if (commands[command].role == Role::transfer)
      begins[commands[command].home] = now;
    else
      now += commands[command].seconds;
    if ((commands[command].kind != Kind::launch && commands[command].kind != Kind::copy) ||
        commands[command].role != Role::fixed)
      continue;
    unsigned home = none, lastFixed = 0;
    bool single = true, isTakenUp = commands[command].kind == Kind::launch;
    for (unsigned earlier : commands[command].before) {
      if (commands[earlier].role == Role::fixed)
        lastFixed = std::max(lastFixed, earlier + 1);
      // A prologue moves with another transfer, so an epilogue must not depend on a prologue.
      single &= commands[earlier].role != Role::prologue;
      if (commands[earlier].role == Role::fixed || commands[earlier].role == Role::prologue)
        continue;
      unsigned other = commands[earlier].home;
      single &= (home == none || home == other) && !transfers[other].isLate;
      isTakenUp |= commands[earlier].role == Role::epilogue;
      home = other;
    }
    // The wait for the transfer can move. Wherever the wait moves, all other data that the epilogue
    // reads must be ready.
    if (home == none || !single || !isTakenUp || lastFixed > getSourceEnd(transfers[home]))
      continue;
    if (transfers[home].isOfActivations &&
        begin - begins[home] - own[home] > mostSlack * transfers[home].seconds)
      continue;
    own[home] += commands[command].seconds;
    commands[command].role = Role::epilogue;
    commands[command].home = home;
    transfers[home].epilogue.push_back(command);
  }
}

void ScheduleProblem::findWindows() {
  for (Transfer &transfer : llvm::reverse(transfers)) {
    transfer.earliest = 0;
    transfer.latest = fixed.size();
    auto follow = [&](unsigned command) {
      for (unsigned earlier : commands[command].before)
        if (commands[earlier].role == Role::fixed)
          transfer.earliest = std::max(transfer.earliest, commands[earlier].slot + 1);
    };
    follow(transfer.command);
    llvm::for_each(transfer.prologue, follow);
    auto precede = [&](unsigned command) {
      for (unsigned later : commands[command].after) {
        if (commands[later].role == Role::fixed)
          transfer.latest = std::min(transfer.latest, commands[later].slot);
        else if (commands[later].home !=
                 commands[transfer.command]
                     .home) // command `later` moves with a later transfer, whose window is known
          transfer.latest = std::min(transfer.latest, transfers[commands[later].home].latest);
      }
    };
    precede(transfer.command);
    llvm::for_each(transfer.prologue, precede);
    llvm::for_each(transfer.epilogue, precede);
    transfer.isEarly = !transfer.isLate || transfer.latest == fixed.size();
  }
}

double ScheduleProblem::getUnscheduled() const {
  double sum = 0;
  for (const Command &command : commands)
    sum += command.seconds;
  return sum;
}

double ScheduleProblem::getMovedSeconds(const Transfer &transfer) const {
  double sum = 0;
  for (ArrayRef<unsigned> moved : {ArrayRef(transfer.prologue), ArrayRef(transfer.epilogue)})
    for (unsigned command : moved)
      sum += commands[command].seconds;
  return sum;
}
