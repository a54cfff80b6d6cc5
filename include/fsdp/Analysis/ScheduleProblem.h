//===- ScheduleProblem.h - Where transfers may start and end ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The commands of a block, what must follow what, and which of them are transfers: collectives, and
// copies between memories. No IR: whoever builds it gives numbers, and gets an order back.
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
  unsigned index; ///< of the command, or of the transfer
};

class ScheduleProblem {
public:
  static constexpr unsigned none = ~0u;
  /// What may move with a transfer: launches and copies with its wait, all but loops with its
  /// start.
  enum class Kind { launch, copy, loop, other };
  enum class Role { fixed, transfer, prologue, epilogue };

  struct Command {
    Kind kind = Kind::other;
    double seconds = 0;
    int64_t live = 0; ///< bytes of the device alive at it, while no transfer moves

    // Derived.
    Role role = Role::fixed;
    unsigned home = none;                         ///< the transfer that it is, or moves with
    unsigned slot = 0;                            ///< the number of fixed commands before it
    llvm::SmallVector<unsigned, 4> before, after; ///< that it must follow, and that must follow it
  };

  struct Transfer {
    unsigned command = none;
    int64_t channel = 0;     ///< Analysis/Schedule.h
    bool isLate = false;     ///< starts as late as hides it: a gather, a copy of what is needed
    bool isBackward = false; ///< of a gather
    double seconds = 0, latency = 0;
    int64_t sentBytes = 0; ///< of a collective
    /// Of the device, that live longer when it moves: the target of a late one, else the source.
    int64_t bytes = 0;
    unsigned alike = none; ///< transfers of one number can start as one; none: it cannot

    // Derived.
    bool isEarly =
        false; ///< ends as soon as it can: frees its source, or nothing here waits for it
    llvm::SmallVector<unsigned> prologue, epilogue; ///< commands that move with its start, its wait
    unsigned earliest = 0, latest = 0;              ///< slots that the fixed commands allow
  };

  /// Returns the number of the command.
  unsigned addCommand(Kind kind, double seconds, int64_t live);
  /// Command `later` must follow command `earlier`.
  void addDependence(unsigned earlier, unsigned later);
  /// Its command becomes a transfer.
  void addTransfer(const Transfer &transfer) { transfers.push_back(transfer); }

  /// Returns why the problem is not well formed, or an empty text.
  std::string check() const;
  /// Derives roles, slots and windows. Of a problem that check() accepts. O(commands +
  /// dependences).
  void derive();
  /// Returns why `order` is no order of this problem, or an empty text: each command, start and
  /// wait is in it once, and what must follow another one does. A transfer is begun by its start,
  /// and done after its wait. O(commands + dependences).
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
  /// Returns the seconds of one command after the other.
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
