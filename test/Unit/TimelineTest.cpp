//===- TimelineTest.cpp - Overlap, bounds and rings -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Timeline.h"
#include "fsdp/Analysis/Cluster.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "gtest/gtest.h"
#include <fstream>
#include <random>

using namespace mlir::fsdp;

static TimelineEvent compute(double seconds) { return {TimelineEvent::Kind::compute, seconds}; }
static TimelineEvent start(unsigned id, unsigned channel, double seconds) {
  return {TimelineEvent::Kind::start, seconds, id, channel};
}
static TimelineEvent await(unsigned id) { return {TimelineEvent::Kind::wait, 0, id}; }

TEST(TimelineTest, HidesWhatIsStartedEarlyEnough) {
  Timeline line = simulate({start(0, 1, 2), compute(3), await(0), compute(1)}, 1);
  EXPECT_DOUBLE_EQ(line.seconds, 4);
  EXPECT_DOUBLE_EQ(line.exposed[0], 0);
  EXPECT_DOUBLE_EQ(line.end[0], 2);
}

TEST(TimelineTest, StallsForTheRest) {
  Timeline line = simulate({start(0, 1, 2), compute(0.5), await(0), compute(1)}, 1);
  EXPECT_DOUBLE_EQ(line.seconds, 3);
  EXPECT_DOUBLE_EQ(line.exposed[0], 1.5);
}

TEST(TimelineTest, OneChannelIsAQueueTwoShareTheLinks) {
  Timeline queue = simulate({start(0, 1, 2), start(1, 1, 2), await(1), await(0)}, 2);
  EXPECT_DOUBLE_EQ(queue.end[0], 2);
  EXPECT_DOUBLE_EQ(queue.end[1], 4);
  Timeline shared = simulate({start(0, 1, 2), start(1, 2, 1), await(1), await(0)}, 2);
  EXPECT_DOUBLE_EQ(shared.end[1], 2);
  EXPECT_DOUBLE_EQ(shared.end[0], 3);
}

// While a transfer occupies half of the multiprocessors, products take twice as long, and memory
// traffic does not.
TEST(TimelineTest, TransfersOccupyMultiprocessors) {
  auto seconds = [](double busy, double memory, unsigned all, double latency = 0) {
    TimelineEvent transfer = start(0, 1, 2), launch = compute(std::max(busy, memory) + latency);
    transfer.multiprocessors = 50;
    launch.busySeconds = busy;
    launch.memorySeconds = memory;
    Timeline line = simulate({transfer, launch, await(0)}, 1, all);
    EXPECT_DOUBLE_EQ(line.seconds, line.computeSeconds + line.slowedSeconds);
    return line.seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(3, 1, 100), 4); // 2 s at half of the rate, then 2 s
  EXPECT_DOUBLE_EQ(seconds(3, 1, 0), 3);
  EXPECT_DOUBLE_EQ(seconds(1, 3, 100), 3);
  EXPECT_DOUBLE_EQ(seconds(3, 4, 100),
                   4 + 2 - 4.0 / 3);                 // the products take 6 s, 1/3 of them in 2 s
  EXPECT_DOUBLE_EQ(seconds(2, 0, 50), 2 + 2 * 0.98); // one multiprocessor of 50 is left
  EXPECT_DOUBLE_EQ(seconds(2, 0, 100, 1), 1 + 2 + 2.0 * 2 / 5);
}

TEST(TimelineTest, BoundOfFirstAndLastWork) {
  EXPECT_DOUBLE_EQ(getLowerBound(10, {}), 10);
  EXPECT_DOUBLE_EQ(getLowerBound(10, {{0, 2, 10}}), 12);           // transfer before all compute
  EXPECT_DOUBLE_EQ(getLowerBound(10, {{10, 2, 0}}), 12);           // transfer after all compute
  EXPECT_DOUBLE_EQ(getLowerBound(10, {{0, 2, 5}, {3, 2, 4}}), 10); // compute hides both
  EXPECT_DOUBLE_EQ(getLowerBound(1, {{0, 4, 1}, {0, 4, 0}}), 8);   // the links are the limit
}

// Channels on the same links share the bandwidth. A channel on other links has full bandwidth.
TEST(TimelineTest, LinksOfTheirOwn) {
  auto copy = [](unsigned id, unsigned channel, double seconds) {
    return TimelineEvent{TimelineEvent::Kind::start, seconds, id, channel, 1};
  };
  std::vector<TimelineEvent> events = {start(0, 1, 4), start(1, 2, 4), copy(2, 3, 3), compute(2),
                                       await(2),       await(1),       await(0)};
  Timeline line = simulate(events, 3);
  EXPECT_DOUBLE_EQ(line.end[2], 3);
  EXPECT_DOUBLE_EQ(line.end[0], 8);
  EXPECT_DOUBLE_EQ(line.end[1], 8);
  EXPECT_DOUBLE_EQ(line.exposed[2], 1);
  EXPECT_DOUBLE_EQ(line.seconds, 8);
  events = {copy(0, 3, 2), copy(1, 4, 2), await(0), await(1)};
  EXPECT_DOUBLE_EQ(simulate(events, 2).seconds, 4);
}

/// Returns a sequence of computes with one collective before each, started `ahead` computes
/// earlier.
static std::vector<TimelineEvent> makeLine(const std::vector<double> &computes,
                                           const std::vector<double> &transfers, unsigned ahead) {
  std::vector<TimelineEvent> events;
  unsigned started = 0;
  for (unsigned i = 0; i < computes.size(); ++i) {
    for (; started < computes.size() && started <= i + ahead; ++started)
      events.push_back(start(started, 1, transfers[started]));
    events.push_back(await(i));
    events.push_back(compute(computes[i]));
  }
  return events;
}

TEST(TimelineTest, NoScheduleBeatsTheBound) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 200; ++round) {
    std::vector<double> computes, transfers;
    double all = 0;
    for (unsigned i = 0; i < 1 + round % 12; ++i) {
      computes.push_back(1 + random() % 10);
      transfers.push_back(random() % 12);
      all += computes.back();
    }
    std::vector<LinkJob> jobs;
    double done = 0;
    for (unsigned i = 0; i < computes.size(); ++i) {
      jobs.push_back({0, transfers[i], all - done});
      done += computes[i];
    }
    double bound = getLowerBound(all, jobs), last = 1e30;
    for (unsigned ahead = 0; ahead < computes.size(); ++ahead) {
      double seconds = simulate(makeLine(computes, transfers, ahead), computes.size()).seconds;
      EXPECT_GE(seconds, bound - 1e-9);
      EXPECT_LE(seconds, last + 1e-9);
      last = seconds;
    }
    EXPECT_NEAR(last, bound, 1e-9); // all gathers started at the beginning, in order, are optimal
  }
}

static Cluster makeCluster(fsdpcommon::LinkRate in, fsdpcommon::LinkRate out) {
  Cluster cluster;
  cluster.links = {{"in", 8, in, {}, {}}, {"out", ClusterLink().ranks, out, {}, {}}};
  return cluster;
}

TEST(ClusterTest, RingsWithinAndAcrossNodes) {
  Cluster cluster = makeCluster({0, 100}, {0, 10});
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 800, 1, 1), 0);
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 800, 8, 1), 7);       // 700 bytes at 100 B/s
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 1600, 16, 1), 18.75); // 1500 over 8 links of 10
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 800, 2, 8),
                   40); // one rank per node has a link of its own
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 800, 8, 1, 2), 14); // two rounds
}

TEST(ClusterTest, LatencyOfEachHop) {
  Cluster cluster = makeCluster({1, 1}, {100, 1});
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 0, 8, 1), 7);
  EXPECT_DOUBLE_EQ(getRingSeconds(cluster, 0, 16, 1), 14 + 100);
}

/// Writes `text` to a temporary file and reads it as a cluster. The name of the file is unique,
/// because ctest runs several tests at the same time.
static std::optional<Cluster> readText(const std::string &text, JsonProblem &problem) {
  llvm::SmallString<128> path;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("cluster", "json", path));
  llvm::FileRemover remover(path);
  std::ofstream(path.c_str()) << text;
  return readCluster(path.str().str(), problem);
}

static std::string device =
    R"("device": {"f32_multiply_adds_per_second": 1e9, "bf16_multiply_adds_per_second": 2e9,
                                          "bytes_per_second": 1e9, "launch_seconds": 0})";

TEST(ClusterTest, ReadsAFile) {
  JsonProblem problem;
  std::optional<Cluster> cluster =
      readText("{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": "
               "1e9, \"seconds\": 1e-6}], " +
                   device + "}",
               problem);
  ASSERT_TRUE(cluster) << problem.message;
  EXPECT_EQ(cluster->links.size(), 1u);
  EXPECT_EQ(cluster->narrowMultiplyAdds, 2e9);
}

/// The built-in cluster equals the one in the file.
TEST(ClusterTest, KnowsGpus) {
  JsonProblem problem;
  std::optional<Cluster> file = readCluster(FSDP_CLUSTERS "/8xH100.json", problem);
  ASSERT_TRUE(file) << problem.message;
  const Cluster &ours = getGpuCluster();
  EXPECT_EQ(file->name, ours.name);
  EXPECT_EQ(file->wideMultiplyAdds, ours.wideMultiplyAdds);
  EXPECT_EQ(file->narrowMultiplyAdds, ours.narrowMultiplyAdds);
  EXPECT_EQ(file->memoryBytesPerSecond, ours.memoryBytesPerSecond);
  EXPECT_EQ(file->launchSeconds, ours.launchSeconds);
  EXPECT_EQ(file->chip, ours.chip);
  EXPECT_EQ(file->clocksPerSecond, ours.clocksPerSecond);
  EXPECT_EQ(file->hostBytesPerSecond, ours.hostBytesPerSecond);
  EXPECT_EQ(file->fileBytesPerSecond, ours.fileBytesPerSecond);
  ASSERT_EQ(file->links.size(), ours.links.size());
  for (const auto &[theirs, link] : llvm::zip_equal(file->links, ours.links)) {
    EXPECT_EQ(theirs.name, link.name);
    EXPECT_EQ(theirs.ranks, link.ranks);
    EXPECT_EQ(theirs.plain.bytesPerSecond, link.plain.bytesPerSecond);
    EXPECT_EQ(theirs.plain.stepSeconds, link.plain.stepSeconds);
  }
}

TEST(ClusterTest, LocatesNumbersThatAreTooLarge) {
  JsonProblem problem;
  EXPECT_FALSE(readText("{\"name\": \"x\",\n \"device\": {\"launch_seconds\": -1e999 }}", problem));
  EXPECT_EQ(problem.line, 2u);
  EXPECT_EQ(problem.column, 31u);
}

TEST(ClusterTest, SaysWhatIsWrong) {
  std::pair<std::string, std::string> bad[] = {
      {"[]", "a cluster: expected an object, found an empty list"},
      {"{\"name\": 1, \"links\": [], " + device + "}",
       "\"name\": expected a string, found the number 1"},
      {"{\"name\": \"x\", \"links\": [], " + device + "}", "\"links\": expected a non-empty list"},
      {"{\"name\": \"x\", \"speed\": 1, \"links\": [], " + device + "}",
       "unknown member \"speed\""},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": 0, \"seconds\": "
       "0}], " +
           device + "}",
       "\"bytes_per_second\": expected a number from 1 to 1e24, found the number 0"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": 1e-320, \"seconds\": "
       "0}], " +
           device + "}",
       "\"bytes_per_second\": expected a number from 1 to 1e24, found the number 1e-320"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": 1e999, \"seconds\": "
       "0}], " +
           device + "}",
       "expected a number that a double can hold, found 1e999"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": 1, \"seconds\": "
       "-1}], " +
           device + "}",
       "\"seconds\": expected a number from 0 to 1e6, found the number -1"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"ranks\": 1, \"bytes_per_second\": 1, "
       "\"seconds\": 0}], " +
           device + "}",
       "\"ranks\": expected a whole number from 2 to 2^32, found the number 1"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"ranks\": 8, \"bytes_per_second\": 1, "
       "\"seconds\": 0}, {\"name\": \"b\", "
       "\"ranks\": 8, \"bytes_per_second\": 1, \"seconds\": 0}], " +
           device + "}",
       "\"ranks\": expected a multiple of the 8 ranks of the previous link, larger, and at most "
       "2^32, found the "
       "number 8"},
      {"{\"name\": \"x\", \"links\": [{\"name\": \"a\", \"bytes_per_second\": 1, \"seconds\": 0}, "
       "{\"name\": \"b\", "
       "\"bytes_per_second\": 1, \"seconds\": 0}], " +
           device + "}",
       "only the last link may omit"},
  };
  for (auto &[text, expected] : bad) {
    JsonProblem problem;
    EXPECT_FALSE(readText(text, problem)) << text;
    EXPECT_NE(problem.message.find(expected), std::string::npos)
        << problem.message << " for " << text;
    EXPECT_GE(problem.line, 1u);
  }
}
