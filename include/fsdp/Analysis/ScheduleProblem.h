//===- ScheduleProblem.h - Windows in which transfers may run ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The commands of a block, their dependences, and which of them are transfers: collectives, and
// copies between memories. The problem holds no IR: its builder numbers the commands and gets an
// order back.
//
//   slots      0    1    2    3    4    5
//   compute    | C0 | C1 | C2 | C3 | C4 |
//   gather              S========W            read by C3: its window ends there
//   reduce                  S======W          written by C1: its window begins after that
//
// Use: addCommand, addDependence, addTransfer; check(); derive(); solve; verify(order).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_SCHEDULEPROBLEM_H
#define FSDP_ANALYSIS_SCHEDULEPROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace mlir::fsdp {

/// An element of an order: a command that computes, or the start of a transfer or the wait for it.
struct ScheduleEvent {
  enum class Kind { compute, start, wait } kind;
  unsigned index; ///< number of the command, or of the transfer
};

class ScheduleProblem {
public:
  static constexpr unsigned none = ~0u;
  /// Kind of a command, which decides whether it may move with a transfer: launches and copies with
  /// its wait, all but loops with its start.
  enum class Kind { launch, copy, loop, other };
  enum class Role { fixed, transfer, prologue, epilogue };

  struct Command {
    Kind kind = Kind::other;
    double seconds = 0;
    int64_t live =
        0; ///< device bytes alive at the command while every transfer is in its original place

    // Derived.
    Role role = Role::fixed;
    unsigned home = none; ///< the transfer that it is or moves with
    unsigned slot = 0;    ///< the number of fixed commands before it
    llvm::SmallVector<unsigned, 4> before,
        after; ///< commands that it must follow; that must follow it
  };

  struct Transfer {
    unsigned command = none;
    int64_t channel = 0; ///< Analysis/Schedule.h
    bool isLate =
        false; ///< starts as late as it is still hidden: a gather, or a copy of data that is needed
    bool isBackward = false; ///< whether a gather is one of the backward
    double seconds = 0, latency = 0;
    int64_t sentBytes = 0; ///< payload of a collective
    /// Device bytes that live longer when it moves: of the target if `isLate`, else of the source.
    int64_t bytes = 0;
    unsigned alike =
        none; ///< transfers with equal numbers can start as one launch; none: it starts alone

    // Derived.
    bool isEarly = false; ///< ends as early as possible: frees its source, or no command of the
                          ///< block waits for it
    llvm::SmallVector<unsigned> prologue,
        epilogue;                      ///< commands that move with its start; with its wait
    unsigned earliest = 0, latest = 0; ///< window of slots that dependences allow
  };

  /// Returns the number of the command.
  unsigned addCommand(Kind kind, double seconds, int64_t live);
  /// Adds the rule that command `later` must follow command `earlier`.
  void addDependence(unsigned earlier, unsigned later);
  /// Makes the command `transfer.command` a transfer.
  void addTransfer(const Transfer &transfer) { transfers.push_back(transfer); }

  /// Returns why the problem is not well formed, or an empty text.
  std::string check() const;
  /// Derives roles, slots and windows of a problem that check() accepts. O(commands + dependences).
  void derive();
  /// Returns why `order` is not a valid order of this problem, or an empty text. In a valid order
  /// each command, start and wait occurs once, and every dependence is kept. A transfer begins at
  /// its start and is done after its wait. O(commands + dependences).
  std::string verify(llvm::ArrayRef<ScheduleEvent> order) const;

  llvm::ArrayRef<Command> getCommands() const { return commands; }
  llvm::ArrayRef<Transfer> getTransfers() const { return transfers; }
  const Command &operator[](unsigned command) const { return commands[command]; }
  bool isFixed(unsigned command) const { return commands[command].role == Role::fixed; }
  /// Returns the fixed commands: slot k is before the k-th of them.
  llvm::ArrayRef<unsigned> getFixed() const { return fixed; }
  /// Returns the seconds of the fixed commands before a slot.
  double getTime(unsigned slot) const { return time[slot]; }
  double getEndTime() const { return time.back(); }
  /// Returns the seconds of all commands, run one after the other.
  double getUnscheduled() const;
  /// Returns the seconds of the commands that move with a transfer.
  double getMovedSeconds(const Transfer &transfer) const;

private:
  void findPrologues();
  void findEpilogues();
  void findWindows();
  unsigned getSourceEnd(const Transfer &transfer) const;

  llvm::SmallVector<Command> commands;
  llvm::SmallVector<Transfer> transfers; ///< in the order of their channels
  llvm::SmallVector<unsigned> fixed;
  llvm::SmallVector<double> time; ///< by slot
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_SCHEDULEPROBLEM_H
