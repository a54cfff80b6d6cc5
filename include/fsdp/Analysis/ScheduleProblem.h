//===- ScheduleProblem.h - Windows in which transfers may run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the commands of a block, their dependences, and which commands are transfers
// (collectives, and copies between memories). The problem contains no IR. Commands and transfers
// are represented by indices, and a solution is an order of these indices.
//
//   slots      0    1    2    3    4    5
//   compute    | C0 | C1 | C2 | C3 | C4 |
//   gather              S========W            read by C3: its window ends there
//   reduce                  S======W          written by C1: its window begins after that
//
// Usage: call addCommand, addDependence and addTransfer, then check() and derive(). Then compute an
// order and call verify() with this order.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_SCHEDULEPROBLEM_H
#define FSDP_ANALYSIS_SCHEDULEPROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace mlir::fsdp {

/// An element of an order. It is a command that is not a transfer, or the start of a transfer, or
/// the wait for a transfer.
struct ScheduleEvent {
  enum class Kind { compute, start, wait } kind;
  unsigned index; ///< index of the command or of the transfer
};

/// Factors by which the schedule lengthens the estimated times of transfers, the largest one last.
/// The one with the fastest simulated step is kept.
inline constexpr double scheduleSlacks[] = {1, 1.5, 2, 3, 4, 6};

class ScheduleProblem {
public:
  static constexpr unsigned none = ~0u;
  /// Kind of a command. The scheduler can move a launch or a copy together with the wait for a
  /// transfer. It can move any command except a loop together with the start of a transfer.
  enum class Kind { launch, copy, loop, other };
  enum class Role { fixed, transfer, prologue, epilogue };

  struct Command {
    Kind kind = Kind::other;
    double seconds = 0;
    /// Parts of the seconds of a launch (TimelineEvent).
    double busySeconds = 0, memorySeconds = 0;
    int64_t live = 0; ///< live device bytes at the command in the original order
    /// Whether the command copies a part of a transient device buffer. The memory of the whole
    /// buffer may become free after the copy.
    bool keepsPart = false;

    // Derived.
    Role role = Role::fixed;
    /// Index of a transfer. The command is this transfer, or moves together with it.
    unsigned home = none;
    /// Number of commands of the role `fixed` that precede the command in the original order.
    unsigned slot = 0;
    /// Commands that must precede this command, and commands that must follow it.
    llvm::SmallVector<unsigned, 4> before, after;
  };

  struct Transfer {
    unsigned command = none;
    /// Channel of Analysis/Schedule.h.
    int64_t channel = 0;
    /// Whether the scheduler should start the transfer as late as possible. `isLate` is true for a
    /// gather, and for a copy whose data a command needs.
    bool isLate = false;
    bool isBackward = false; ///< whether the transfer is a gather in the backward
    /// Whether the transfer is a sum of activations, whose readers are most kernels of a program.
    bool isOfActivations = false;
    double seconds = 0, latency = 0;
    uint64_t multiprocessors = 0; ///< which the transfer occupies
    /// Payload of a collective in bytes.
    int64_t sentBytes = 0;
    /// Size in bytes of the device buffer that is live for a longer time if the transfer moves.
    /// This buffer is the target if `isLate` is true, else the source.
    int64_t bytes = 0;
    /// One launch can start several transfers that have the same value of `alike`. A transfer whose
    /// `alike` is `none` is started by a launch of its own.
    unsigned alike = none;

    // Derived.
    /// Whether the scheduler should end the transfer as early as possible. `isEarly` is true if
    /// `isLate` is false, or if no fixed command depends on the transfer.
    bool isEarly = false;
    /// `prologue` lists the commands that move with the start of the transfer. `epilogue` lists the
    /// commands that move with the wait for the transfer.
    llvm::SmallVector<unsigned> prologue, epilogue;
    /// The dependences allow the transfer to extend from slot `earliest` to slot `latest`.
    unsigned earliest = 0, latest = 0;
  };

  /// Adds a command and returns the index of the command.
  unsigned addCommand(Kind kind, double seconds, int64_t live);
  void setParts(unsigned command, double busySeconds, double memorySeconds) {
    commands[command].busySeconds = busySeconds;
    commands[command].memorySeconds = memorySeconds;
  }
  void setKeepsPart(unsigned command) { commands[command].keepsPart = true; }
  /// Sets the number of multiprocessors of the device. If it is 0, transfers occupy none.
  void setMultiprocessors(uint64_t number) { multiprocessors = number; }
  uint64_t getMultiprocessors() const { return multiprocessors; }
  /// Adds the constraint that the command `later` must run after the command `earlier`.
  void addDependence(unsigned earlier, unsigned later);
  /// Declares that the command `transfer.command` is a transfer.
  void addTransfer(const Transfer &transfer) { transfers.push_back(transfer); }

  /// Returns the reason why the problem is malformed, or an empty string.
  std::string check() const;
  /// Computes the members below "Derived", for a problem that check() accepts. The time is
  /// O(commands + dependences).
  void derive();
  /// Returns the reason why `order` is not a valid order of this problem, or an empty string. In a
  /// valid order, each command that is no transfer, each start of a transfer and each wait for a
  /// transfer occurs exactly once, and all dependences are kept. The start of a transfer follows
  /// all commands on which the transfer depends. All commands that depend on the transfer follow
  /// the wait for the transfer. The time is O(commands + dependences).
  std::string verify(llvm::ArrayRef<ScheduleEvent> order) const;

  llvm::ArrayRef<Command> getCommands() const { return commands; }
  llvm::ArrayRef<Transfer> getTransfers() const { return transfers; }
  const Command &operator[](unsigned command) const { return commands[command]; }
  bool isFixed(unsigned command) const { return commands[command].role == Role::fixed; }
  /// Returns the fixed commands. Slot k is the position just before fixed command k.
  llvm::ArrayRef<unsigned> getFixed() const { return fixed; }
  /// Returns the total seconds of the fixed commands before a slot.
  double getTime(unsigned slot) const { return time[slot]; }
  double getEndTime() const { return time.back(); }
  /// Returns the sum of the seconds of all commands. If no commands overlap, this sum is the
  /// duration.
  double getUnscheduled() const;
  /// Returns the total seconds of the commands that move with a transfer.
  double getMovedSeconds(const Transfer &transfer) const;

private:
  void findPrologues();
  void findEpilogues();
  void findWindows();
  unsigned getSourceEnd(const Transfer &transfer) const;

  uint64_t multiprocessors = 0;
  llvm::SmallVector<Command> commands;
  llvm::SmallVector<Transfer> transfers; ///< all transfers, sorted by channel
  llvm::SmallVector<unsigned> fixed;
  llvm::SmallVector<double> time; ///< seconds of the fixed commands before each slot
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_SCHEDULEPROBLEM_H
