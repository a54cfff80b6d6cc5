//===- ScheduleProblem.h - Windows in which transfers may run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the commands of a block, their dependences, and which commands are transfers
// (collectives, and copies between memories). The problem contains no IR: commands and transfers
// are indices, and a solution is an order of such indices.
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

/// An element of an order: a command that is no transfer, or the start or the wait of a transfer.
struct ScheduleEvent {
  enum class Kind { compute, start, wait } kind;
  unsigned index; ///< index of the command or of the transfer
};

class ScheduleProblem {
public:
  static constexpr unsigned none = ~0u;
  /// Kind of a command. Launches and copies can move with the wait of a transfer. All commands
  /// except loops can move with the start of a transfer.
  enum class Kind { launch, copy, loop, other };
  enum class Role { fixed, transfer, prologue, epilogue };

  struct Command {
    Kind kind = Kind::other;
    double seconds = 0;
    int64_t live = 0; ///< live device bytes at the command in the original order

    // Derived.
    Role role = Role::fixed;
    unsigned home = none; ///< index of the transfer that the command is or with which it moves
    /// Number of fixed commands that precede the command.
    unsigned slot = 0;
    /// Commands that must precede this command, and commands that must follow it.
    llvm::SmallVector<unsigned, 4> before, after;
  };

  struct Transfer {
    unsigned command = none;
    /// Channel of Analysis/Schedule.h.
    int64_t channel = 0;
    /// Whether the transfer starts as late as possible: true for a gather, and for a copy whose
    /// data a command waits for.
    bool isLate = false;
    bool isBackward = false; ///< whether the transfer is a gather of the backward
    double seconds = 0, latency = 0;
    /// Payload of a collective in bytes.
    int64_t sentBytes = 0;
    /// Device bytes that live longer when the transfer moves: the target if `isLate`, else the
    /// source.
    int64_t bytes = 0;
    /// Transfers with equal `alike` can start in one launch. With `none`, a transfer starts alone.
    unsigned alike = none;

    // Derived.
    /// Whether the transfer ends as early as possible: not `isLate`, or no command waits for it.
    bool isEarly = false;
    /// Commands that move with the start of the transfer, and those that move with the wait.
    llvm::SmallVector<unsigned> prologue, epilogue;
    unsigned earliest = 0, latest = 0; ///< first and last slot that the dependences allow
  };

  /// Adds a command and returns its index.
  unsigned addCommand(Kind kind, double seconds, int64_t live);
  /// Adds the constraint that command `later` follows command `earlier`.
  void addDependence(unsigned earlier, unsigned later);
  /// Declares that the command `transfer.command` is a transfer.
  void addTransfer(const Transfer &transfer) { transfers.push_back(transfer); }

  /// Returns the reason why the problem is malformed, or an empty string.
  std::string check() const;
  /// Derives roles, slots and windows of a problem that check() accepts. O(commands + dependences).
  void derive();
  /// Returns the reason why `order` is not a valid order of this problem, or an empty string. In a
  /// valid order, each command, start and wait occurs once, and all dependences are kept. A
  /// transfer begins at its start and is done at its wait. O(commands + dependences).
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
  /// Returns the total seconds of all commands, if none overlap.
  double getUnscheduled() const;
  /// Returns the total seconds of the commands that move with a transfer.
  double getMovedSeconds(const Transfer &transfer) const;

private:
  void findPrologues();
  void findEpilogues();
  void findWindows();
  unsigned getSourceEnd(const Transfer &transfer) const;

  llvm::SmallVector<Command> commands;
  llvm::SmallVector<Transfer> transfers; ///< sorted by channel
  llvm::SmallVector<unsigned> fixed;
  llvm::SmallVector<double> time; ///< by slot
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_SCHEDULEPROBLEM_H
