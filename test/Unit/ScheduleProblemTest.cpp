//===- ScheduleProblemTest.cpp - Problems, orders, the solver ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/ScheduleProblem.h"
#include "Schedule/ScheduleSolver.h"
#include "fsdp/Analysis/Schedule.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::fsdp;
using Kind = ScheduleProblem::Kind;
using Event = ScheduleEvent;

static constexpr Event::Kind compute = Event::Kind::compute, start = Event::Kind::start,
                             await = Event::Kind::wait;

static void addGather(ScheduleProblem &problem, double seconds, int64_t bytes = 0) {
  ScheduleProblem::Transfer transfer;
  transfer.command = problem.addCommand(Kind::other, seconds, 0);
  transfer.channel = gatherChannel;
  transfer.isLate = true;
  transfer.seconds = seconds;
  transfer.bytes = transfer.sentBytes = bytes;
  transfer.alike = 0;
  problem.addTransfer(transfer);
}

/// Returns a problem of three launches of 1 s each and a gather (command 2), which the last launch
/// reads.
static ScheduleProblem gatherBeforeLast(double seconds) {
  ScheduleProblem problem;
  problem.addCommand(Kind::launch, 1, 100);
  problem.addCommand(Kind::launch, 1, 100);
  addGather(problem, seconds, 50);
  problem.addCommand(Kind::launch, 1, 150);
  problem.addDependence(0, 1);
  problem.addDependence(2, 3);
  problem.derive();
  return problem;
}

static std::string text(llvm::ArrayRef<Event> order) {
  std::string words;
  for (const Event &event : order)
    words += (event.kind == compute ? "c"
              : event.kind == start ? "s"
                                    : "w") +
             std::to_string(event.index) + " ";
  return words;
}

TEST(ScheduleProblemTest, ChecksWhatIsWellFormed) {
  EXPECT_EQ(gatherBeforeLast(1).check(), "");
  ScheduleProblem cycle;
  cycle.addCommand(Kind::launch, 1, 0);
  cycle.addCommand(Kind::launch, 1, 0);
  cycle.addDependence(0, 1);
  cycle.addDependence(1, 0);
  EXPECT_EQ(cycle.check(), "command 0 must follow command 1, which is not before it");
  ScheduleProblem negative;
  negative.addCommand(Kind::launch, -1, 0);
  EXPECT_NE(negative.check().find("takes -1"), std::string::npos) << negative.check();
  ScheduleProblem transfer = gatherBeforeLast(1);
  ScheduleProblem::Transfer beyond;
  beyond.command = 9;
  transfer.addTransfer(beyond);
  EXPECT_EQ(transfer.check(), "transfer 1 is no command");
}

TEST(ScheduleProblemTest, VerifiesOrders) {
  ScheduleProblem problem = gatherBeforeLast(1);
  EXPECT_EQ(problem.verify({{compute, 0}, {start, 0}, {compute, 1}, {await, 0}, {compute, 3}}), "");
  EXPECT_EQ(problem.verify({{start, 0}, {compute, 0}, {compute, 1}, {compute, 3}, {await, 0}}),
            "command 3 begins before command 2 is done");
  EXPECT_EQ(problem.verify({{compute, 1}, {compute, 0}, {start, 0}, {await, 0}, {compute, 3}}),
            "command 1 begins before command 0 is done");
  EXPECT_EQ(problem.verify({{compute, 0}, {compute, 1}, {await, 0}, {start, 0}, {compute, 3}}),
            "command 2 is waited for before it starts, or twice");
  EXPECT_EQ(problem.verify({{compute, 0}, {compute, 1}, {start, 0}, {await, 0}}),
            "command 3 is not done");
  EXPECT_EQ(problem.verify({{compute, 0}, {compute, 0}}), "command 0 is there twice");
  EXPECT_EQ(problem.verify({{compute, 2}}), "command 2 is a transfer");
}

TEST(ScheduleProblemTest, StartsAGatherWhereItIsHidden) {
  for (auto [seconds, expected] : {std::pair(1.0, "c0 s0 c1 w0 c3 "), {2.0, "s0 c0 c1 w0 c3 "}}) {
    ScheduleProblem problem = gatherBeforeLast(seconds);
    ScheduleSolver solver(problem);
    solver.place({});
    EXPECT_EQ(text(solver.getOrder()), expected);
    EXPECT_DOUBLE_EQ(solver.simulate().seconds, 3);
    EXPECT_DOUBLE_EQ(solver.getLowerBound(), 3);
    EXPECT_EQ(solver.getPeak(), 150);
  }
}

TEST(ScheduleProblemTest, KeepsToTheBytesAllowed) {
  ScheduleProblem problem = gatherBeforeLast(1);
  ScheduleSolver solver(problem);
  ScheduleLimits limits;
  limits.bytes = 149; // the gather's target does not fit beside the launch before the last one
  solver.place(limits);
  EXPECT_EQ(text(solver.getOrder()), "c0 c1 s0 w0 c3 ");
  EXPECT_EQ(solver.getLimit(0), "memory");
  EXPECT_DOUBLE_EQ(solver.simulate().seconds, 4);
  limits.bytes = 150;
  solver.place(limits);
  EXPECT_EQ(text(solver.getOrder()), "c0 s0 c1 w0 c3 ");
}

TEST(ScheduleProblemTest, KeepsRecomputedKernelsOfActivationsInTheBackward) {
  ScheduleProblem problem;
  problem.addCommand(Kind::launch, 1, 0);
  ScheduleProblem::Transfer sum;
  sum.command = problem.addCommand(Kind::other, 0.1, 0);
  sum.channel = reduceChannel;
  sum.seconds = 0.1;
  sum.isOfActivations = true;
  problem.addTransfer(sum);
  problem.addDependence(0, 1);
  unsigned forward = problem.addCommand(Kind::launch, 1, 0);
  problem.addDependence(1, forward);
  unsigned next = problem.addCommand(Kind::launch, 1, 0);
  problem.addDependence(forward, next);
  problem.addCommand(Kind::launch, 0.5, 0); // nothing that depends on the sum
  unsigned soon = problem.addCommand(Kind::launch, 1, 0);
  problem.addDependence(1, soon);
  problem.addCommand(Kind::launch, 0.2, 0);
  unsigned late = problem.addCommand(Kind::launch, 1, 0); // 0.7 s after the sum without its kernels
  problem.addDependence(1, late);
  problem.derive();
  for (unsigned near : {forward, next, soon})
    EXPECT_EQ(problem[near].role, ScheduleProblem::Role::epilogue) << near;
  EXPECT_EQ(problem[late].role, ScheduleProblem::Role::fixed);
}

TEST(ScheduleProblemTest, EndsAReductionAsEarlyAsItCan) {
  ScheduleProblem problem;
  problem.addCommand(Kind::launch, 1, 0);
  ScheduleProblem::Transfer reduction;
  reduction.command = problem.addCommand(Kind::other, 1.5, 0);
  reduction.channel = reduceChannel;
  reduction.seconds = 1.5;
  problem.addTransfer(reduction);
  problem.addDependence(0, 1);
  unsigned norm = problem.addCommand(Kind::launch, 0.1, 0); // moves with the transfer's wait
  problem.addDependence(1, norm);
  for (int i = 0; i < 3; ++i)
    problem.addCommand(Kind::launch, 1, 0);
  problem.derive();
  EXPECT_EQ(problem[norm].role, ScheduleProblem::Role::epilogue);
  ScheduleSolver solver(problem);
  solver.place({});
  EXPECT_EQ(text(solver.getOrder()), "c0 s0 c3 c4 w0 c2 c5 ");
}

TEST(ScheduleProblemTest, StartsAlikeGathersTogether) {
  ScheduleProblem problem;
  problem.addCommand(Kind::launch, 4, 0);
  addGather(problem, 1, 10);
  problem.addCommand(Kind::launch, 1, 0);
  addGather(problem, 1, 10);
  problem.addCommand(Kind::launch, 1, 0);
  problem.addDependence(1, 2);
  problem.addDependence(3, 4);
  problem.derive();
  ScheduleSolver solver(problem);
  ScheduleLimits limits;
  limits.bucketBytes = 20;
  solver.place(limits);
  EXPECT_EQ(text(solver.getOrder()), "s0 s1 c0 w0 c2 w1 c4 ");
  limits.bucketBytes = 19;
  solver.place(limits);
  EXPECT_EQ(text(solver.getOrder()), "s0 c0 s1 w0 c2 w1 c4 ");
}

// For random problems, each order that the solver finds is valid.
TEST(ScheduleProblemTest, OrdersOfRandomProblemsHold) {
  std::mt19937 random(7);
  auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  for (int round = 0; round < 2000; ++round) {
    ScheduleProblem problem;
    unsigned commands = 2 + below(30);
    for (unsigned number = 0; number < commands; ++number) {
      double seconds = 0.5 * below(6);
      unsigned kind = below(6);
      problem.addCommand(static_cast<Kind>(below(4)), seconds, below(100));
      for (unsigned count = number ? below(3) : 0; count > 0; --count)
        problem.addDependence(below(number), number);
      if (kind > 2)
        continue;
      ScheduleProblem::Transfer transfer;
      transfer.command = number;
      transfer.isLate = kind != 1;
      transfer.channel = kind == 0 ? gatherChannel : kind == 1 ? reduceChannel : toDeviceChannel;
      transfer.alike = kind == 2 ? ScheduleProblem::none : below(2);
      transfer.seconds = seconds;
      transfer.latency = seconds / 4;
      transfer.bytes = transfer.sentBytes = below(50);
      problem.addTransfer(transfer);
    }
    ASSERT_EQ(problem.check(), "");
    problem.derive();
    ScheduleSolver solver(problem);
    for (double slack : {1.0, 3.0})
      for (int64_t bytes : {0, 60})
        for (int64_t bucket : {0, 80}) {
          ScheduleLimits limits;
          limits.slack = slack;
          limits.bytes = bytes;
          limits.bucketBytes = bucket;
          limits.forwardPrefetch = static_cast<int64_t>(below(4)) - 1;
          solver.place(limits);
          ASSERT_EQ(problem.verify(solver.getOrder()), "")
              << round << ": " << text(solver.getOrder());
          ASSERT_GE(solver.simulate().seconds, solver.getLowerBound() - 1e-9) << round;
        }
  }
}
