//===- SimulateTest.cpp - Simulated steps on clusters -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the simulated times of rings and shared links with formulas, and simulated bandwidths
// with a published curve. Checks that invalid cluster files are refused, and that the simulated
// durations of steps are within bounds.
//
//===----------------------------------------------------------------------===//

#include "OverlappingToy.h"
#include "PlainCluster.h"
#include "core/Error.h"
#include "execute/Session.h"
#include "simulate/Links.h"
#include "simulate/Simulation.h"
#include "testing/toy/ToyModel.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;
using Kind = fb::CollectiveKind;

TEST(Transfer, RingsOfOneLevel) {
  Cluster cluster = plainCluster({link("a", 64, 1e-5, 1e9)});
  EXPECT_NEAR(planTransfer(cluster, Kind::all_gather, 8e8, {8, 1}).aloneSeconds(), 7e-5 + 0.7,
              1e-12);
  EXPECT_NEAR(planTransfer(cluster, Kind::reduce_scatter, 8e8, {8, 1}).aloneSeconds(), 7e-5 + 0.7,
              1e-12);
  EXPECT_NEAR(planTransfer(cluster, Kind::all_reduce, 8e8, {8, 1}).aloneSeconds(), 2 * (7e-5 + 0.7),
              1e-12);
  EXPECT_NEAR(planTransfer(cluster, Kind::broadcast, 8e8, {8, 1}).aloneSeconds(), 7e-5 + 0.8,
              1e-12);
  EXPECT_EQ(planTransfer(cluster, Kind::all_gather, 8e8, {1, 1}).aloneSeconds(), 0);
}

// A shift has one step. Between nodes, one rank of a node sends over its own uplink.
TEST(Transfer, Shifts) {
  Cluster cluster = plainCluster({link("in", 8, 1e-6, 4e9), link("out", 64, 1e-4, 1e8)});
  EXPECT_NEAR(planTransfer(cluster, Kind::shift, 4e8, {8, 1}).aloneSeconds(), 1e-6 + 0.1, 1e-9);
  EXPECT_NEAR(planTransfer(cluster, Kind::shift, 4e8, {16, 1}).aloneSeconds(), 1e-4 + 4, 1e-9);
  EXPECT_EQ(planTransfer(cluster, Kind::shift, 4e8, {1, 1}).aloneSeconds(), 0);
}

// A ring of 16 ranks on two nodes of 8 ranks needs 15 steps. 14 of the steps are within nodes, and
// one step is between nodes. The ranks share 8 uplinks.
TEST(Transfer, RingsOfTwoLevels) {
  Cluster cluster = plainCluster({link("in", 8, 1e-6, 4e9), link("out", 64, 1e-4, 1e8)});
  EXPECT_NEAR(planTransfer(cluster, Kind::all_gather, 16e8, {16, 1}).aloneSeconds(),
              14e-6 + 1e-4 + 15e8 / 8e8, 1e-9);
  // If each node has only one member of the ring, each member uses one uplink.
  EXPECT_NEAR(planTransfer(cluster, Kind::all_gather, 4e8, {4, 8}).aloneSeconds(), 3e-4 + 3e8 / 1e8,
              1e-9);
}

TEST(Transfer, TakesTheProtocolThatIsFastest) {
  Cluster cluster = plainCluster({link("a", 64, 1, 1)});
  cluster.protocols = {{"near", 1e-6}, {"far", 1e-4}};
  cluster.links[0].protocols = {{"near", {1e-6, 1e9}}, {"far", {1e-6, 4e9}}};
  EXPECT_EQ(planTransfer(cluster, Kind::all_gather, 1e4, {8, 1}).protocol, "near");
  Transfer far = planTransfer(cluster, Kind::all_gather, 8e8, {8, 1});
  EXPECT_EQ(far.protocol, "far");
  EXPECT_NEAR(far.aloneSeconds(), 1e-4 + 7e-6 + 7e8 / 4e9, 1e-12);
}

static Transfer work(uint64_t chunks, double chunkSeconds, double head = 0) {
  return {"", head, chunks, {chunkSeconds}, 0};
}

TEST(Links, OneChannelIsAQueueTwoShare) {
  Links queue(1);
  size_t first = queue.start(work(20, 0.1), 1, 0, 0), second = queue.start(work(20, 0.1), 1, 0, 0);
  EXPECT_NEAR(queue.finish(second), 4, 1e-9);
  EXPECT_NEAR(queue.flight(first).end, 2, 1e-9);
  EXPECT_NEAR(queue.flight(second).begin, 2, 1e-9);
  // The shorter collective gets half of the bandwidth, and therefore takes twice as long as if it
  // ran alone.
  Links shared(1);
  first = shared.start(work(200, 0.01), 1, 0, 0);
  second = shared.start(work(100, 0.01), 2, 0, 0);
  EXPECT_NEAR(shared.finish(second), 2, 0.011);
  EXPECT_NEAR(shared.finish(first), 3, 0.011);
  EXPECT_NEAR(shared.busySeconds(0), 3, 1e-9);
  EXPECT_EQ(shared.chunksMoved(), 300u);
}

TEST(Links, LatencyLeavesTheLinksToOthers) {
  Links links(1);
  size_t waits = links.start(work(10, 0.1, /*head=*/1), 1, 0, 0),
         moves = links.start(work(10, 0.1), 2, 0, 0);
  EXPECT_NEAR(links.finish(moves), 1, 1e-9);
  EXPECT_NEAR(links.finish(waits), 2, 1e-9);
}

// The delay with which the host starts a collective has no effect if the previous collective of the
// channel is still in flight at the end of the delay.
TEST(Links, DelaysHideBehindAQueue) {
  Links links(1);
  size_t first = links.start(work(10, 0.1), 1, 0, 0.5),
         second = links.start(work(10, 0.1), 1, 0, 0.5);
  EXPECT_NEAR(links.finish(first), 1.5, 1e-9);
  EXPECT_NEAR(links.finish(second), 2.5, 1e-9);
  size_t third = links.start(work(10, 0.1), 1, 10, 0.5);
  EXPECT_NEAR(links.finish(third), 11.5, 1e-9);
}

TEST(Links, ACollectiveThatEndsLaterThanItsLastChunkBeginsHoldsItsChannel) {
  Links links(1);
  links.start(work(1, 1), 1, 0, 0);
  size_t next = links.start(work(1, 1), 1, 0.5, 0);
  EXPECT_NEAR(links.finish(next), 2, 1e-9);
}

// A collective waits for the previous collective of its channel even if the two collectives use
// different levels of links.
TEST(Links, AChannelIsHeldWhateverTheLevel) {
  Links links(2);
  size_t first = links.start({"", 0, 1, {1, 0}, 0}, 1, 0, 0),
         next = links.start({"", 0, 1, {0, 1}, 0}, 1, 0.5, 0);
  EXPECT_NEAR(links.finish(next), 2, 1e-9);
  EXPECT_NEAR(links.flight(first).end, 1, 1e-9);
  EXPECT_NEAR(links.flight(next).begin, 1, 1e-9);
}

// A collective that uses both levels leaves the fast level idle for two thirds of the time. Another
// collective can use the fast level in this time.
TEST(Links, LevelsWorkAtTheSameTime) {
  Links links(2);
  size_t both = links.start({"", 0, 10, {0.1, 0.3}, 0}, 1, 0, 0),
         inner = links.start({"", 0, 10, {0.1, 0}, 0}, 2, 0, 0);
  EXPECT_NEAR(links.finish(inner), 1.5, 0.11);
  EXPECT_NEAR(links.finish(both), 3, 0.11);
}

TEST(Links, TransfersOccupyMultiprocessorsFromBeginToEnd) {
  Links links(1);
  Transfer transfer = work(10, 0.1);
  transfer.multiprocessors = 3;
  links.start(transfer, 1, 0, 0.5);
  double until = 0;
  EXPECT_EQ(links.occupied(0, 0, until), 0u);
  EXPECT_DOUBLE_EQ(until, 0.5);
  EXPECT_EQ(links.occupied(0.5, 0.5, until), 3u);
  EXPECT_EQ(links.occupied(0.5, 10, until), 3u);
  EXPECT_NEAR(until, 1.5, 1e-9);
  EXPECT_EQ(links.occupied(until, 10, until), 0u);
  EXPECT_EQ(until, std::numeric_limits<double>::infinity());
}

// The curve gives the bus bandwidth of an all-reduce for each payload, in 10^9 bytes per second. It
// was measured with NCCL 2.27.7 on 8 x H200: github.com/stas00/ml-engineering (744d01e, 2026-08),
// network/README.md, "all_reduce_bench.py". Each payload was timed alone, after a barrier. The
// cluster file uses the constants of NCCL (2.30.7: src/graph/tuning.cc, src/graph/search.cc,
// src/enqueue.cc). Only one number is calibrated: the time that torch needs to issue a collective
// is computed from the measured time of the smallest payload.
TEST(Curve, AllReduceOfEightH200) {
  Cluster cluster = readCluster(FSDPRT_CLUSTERS "/8xH200.json");
  auto seconds = [&](double bytes, double issue) {
    Links links(1);
    return links.finish(
        links.start(planTransfer(cluster, Kind::all_reduce, bytes, {8, 1}), 1, 0, issue));
  };
  auto measured = [](double bytes, double busGigabytes) {
    return 1.75 * bytes / (busGigabytes * 1e9);
  };
  double issue = measured(32 << 10, 1.44) - seconds(32 << 10, 0);
  EXPECT_NEAR(issue, 24e-6, 1e-6);
  const std::pair<int, double> curve[] = {
      {16, 2.93},   {17, 5.73},   {18, 11.74},  {21, 64.53},  {22, 107.16}, {23, 155.53},
      {24, 219.89}, {25, 275.84}, {26, 346.51}, {27, 401.93}, {28, 436.15}, {29, 450.29},
      {30, 463.58}, {31, 469.17}, {32, 473.10}, {33, 477.45}, {34, 482.26}};
  for (auto [power, bus] : curve) {
    double bytes = std::ldexp(1, power), ratio = seconds(bytes, issue) / measured(bytes, bus);
    std::printf("%12.0f bytes: %8.2f GB/s measured, %8.2f simulated, time %+5.1f %%\n", bytes, bus,
                1.75 * bytes / seconds(bytes, issue) / 1e9, 100 * (ratio - 1));
    EXPECT_NEAR(ratio, 1, 0.1) << bytes;
  }
  // The predicted times of two intermediate payloads are too long. In the measurement, the work of
  // the host overlaps with the work of the devices (docs/explanation/simulator.md).
  EXPECT_NEAR(seconds(1 << 19, issue) / measured(1 << 19, 23.94), 1.19, 0.02);
  EXPECT_NEAR(seconds(1 << 20, issue) / measured(1 << 20, 39.93), 1.14, 0.02);
}

// The log of the published measurement shows which algorithm NCCL chose: a ring with the protocol
// LL for up to 1 MiB, and NVLS from 2 MiB on.
TEST(Curve, WaysOfEightH200) {
  Cluster cluster = readCluster(FSDPRT_CLUSTERS "/8xH200.json");
  for (int power = 15; power <= 34; ++power)
    EXPECT_EQ(planTransfer(cluster, Kind::all_reduce, std::ldexp(1, power), {8, 1}).protocol,
              power <= 20 ? "LL" : "switch")
        << power;
}

// The source of the curve also contains times of other collectives of 16 GiB and of 1000
// consecutive all-reduces of 4 MB. The other collectives use rings.
TEST(Curve, RingsAndQueuesOfEightH200) {
  Cluster cluster = readCluster(FSDPRT_CLUSTERS "/8xH200.json");
  double bytes = std::ldexp(1, 34);
  EXPECT_NEAR(0.875 * bytes /
                  planTransfer(cluster, Kind::all_gather, bytes, {8, 1}).aloneSeconds() / 1e9,
              361.4, 18);
  EXPECT_NEAR(0.875 * bytes /
                  planTransfer(cluster, Kind::reduce_scatter, bytes, {8, 1}).aloneSeconds() / 1e9,
              362.9, 18);
  EXPECT_NEAR(1.5 * bytes / planTransfer(cluster, Kind::all_reduce, bytes, {4, 1}).aloneSeconds() /
                  1e9,
              363.3, 18);
  Links links(1);
  size_t last = 0;
  for (int i = 0; i < 1000; ++i)
    last = links.start(planTransfer(cluster, Kind::all_reduce, 4e6, {8, 1}), 1, 0, 24e-6);
  EXPECT_NEAR(1.75 * 4e9 * 8 / links.finish(last) / 1e9, 1146.1, 114.6);
}

namespace {
const char *const plainFile =
    R"({"name": "c", "device": {"f32_multiply_adds_per_second": 1e9, "bf16_multiply_adds_per_second": 1e9,
  "bytes_per_second": 1e9, "launch_seconds": 0}, "protocols": [{"name": "P", "seconds": 0}], "links": [{"name": "a", "ranks": 4, "bytes_per_second": 1e9, "seconds": 0,
  "protocols": [{"name": "P", "seconds": 0, "bytes_per_second": 1e9}], "switch_all_reduce": {"least_ranks": 2, "seconds": 0,
  "bytes_per_second": 1e9, "round_seconds": 0, "rounds": [{"from_bytes": 0, "bytes": 1024}, {"from_bytes": 5, "bytes": 4096}]}},
  {"name": "b", "bytes_per_second": 1e9, "seconds": 0}]})";

struct Misspelt {
  const char *from, *to, *words;
};
std::ostream &operator<<(std::ostream &stream, const Misspelt &one) { return stream << one.to; }

class ClusterFile : public ::testing::TestWithParam<Misspelt> {};
} // namespace

static std::string problemOf(const std::string &text) {
  std::string path = FSDPRT_SCRATCH "/cluster.json";
  writeFile(path, text.data(), text.size());
  try {
    readCluster(path);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT);
    EXPECT_EQ(error.message.find(path), 0u) << error.message;
    return error.message;
  }
  return "";
}

TEST_P(ClusterFile, IsRefused) {
  std::string text = plainFile;
  size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(GetParam().from).size(), GetParam().to);
  EXPECT_NE(problemOf(text).find(GetParam().words), std::string::npos) << problemOf(text);
}

INSTANTIATE_TEST_SUITE_P(
    All, ClusterFile,
    ::testing::Values(
        Misspelt{"{\"name\": \"c\"", "[", "not JSON: "},
        Misspelt{"\"name\": \"c\",", "", "a cluster: expected a member \"name\""},
        Misspelt{"\"name\": \"c\"", "\"name\": 3",
                 "a cluster: \"name\": expected a string, found the number 3"},
        Misspelt{"\"name\": \"c\"", "\"nme\": 3, \"name\": \"c\"",
                 "a cluster: unknown member \"nme\"; expected \"name\", \"device\""},
        Misspelt{"\"name\": \"c\"", "\"name\": \"d\", \"name\": \"c\"",
                 "\"name\" is given twice in one object"},
        Misspelt{"\"f32_multiply_adds_per_second\": 1e9", "\"f32_multiply_adds_per_second\": -1",
                 "\"f32_multiply_adds_per_second\": expected a number from 1 to 1e24, found the "
                 "number -1"},
        Misspelt{"\"f32_multiply_adds_per_second\": 1e9",
                 "\"f32_multiply_adds_per_second\": 1e-320",
                 "expected a number from 1 to 1e24, found "},
        Misspelt{"\"launch_seconds\": 0", "\"launch_seconds\": \"0\"",
                 "\"launch_seconds\": expected a number from 0 to 1e6, found the string \"0\""},
        Misspelt{"\"launch_seconds\": 0", "\"launch_seconds\": 1e300",
                 "expected a number from 0 to 1e6, found the number 1e300"},
        Misspelt{"\"launch_seconds\": 0", "\n\"launch_seconds\": 1e999",
                 ":3:19: expected a number that a double can hold, found 1e999"},
        Misspelt{"\"bytes\": 1024", "\"bytes\": 1e-300",
                 "\"bytes\": expected a number from 1024 to 1e24, found the number 1e-300"},
        Misspelt{"\"launch_seconds\": 0",
                 "\"launch_seconds\": 0, \"kinds\": {\"row\": {\"speed\": 1}}",
                 "kind \"row\": unknown member \"speed\""},
        Misspelt{"\"launch_seconds\": 0", "\"launch_seconds\": 0, \"kinds\": {\"contracts\": {}}",
                 "kind \"contracts\": unknown; expected map, row, column, contract, attention, "
                 "scatter, scalar, copy, memory"},
        Misspelt{"\"launch_seconds\": 0", "\"launch_seconds\": 0, \"chip\": \"sm_90a\"",
                 "\"device\": expected both \"chip\" and \"clocks_per_second\", or neither"},
        Misspelt{"\"launch_seconds\": 0",
                 "\"launch_seconds\": 0, \"chip\": 90, \"clocks_per_second\": 1e9",
                 "\"chip\": expected a name such as \"sm_90a\", found the number 90"},
        Misspelt{"\"launch_seconds\": 0",
                 "\"launch_seconds\": 0, \"chip\": \"sm90a\", \"clocks_per_second\": 1e9",
                 "\"chip\": expected a name such as \"sm_90a\", found the string \"sm90a\""},
        Misspelt{"\"launch_seconds\": 0",
                 "\"launch_seconds\": 0, \"chip\": \"sm_a\", \"clocks_per_second\": 1e9",
                 "\"chip\": expected a name such as \"sm_90a\", found the string \"sm_a\""},
        Misspelt{"\"launch_seconds\": 0",
                 "\"launch_seconds\": 0, \"chip\": \"sm_90a\", \"clocks_per_second\": 0",
                 "\"clocks_per_second\": expected a number from 1 to 1e24, found the number 0"},
        Misspelt{
            "\"ranks\": 4", "\"ranks\": 1",
            "link \"a\": \"ranks\": expected a whole number from 2 to 2^32, found the number 1"},
        Misspelt{"\"ranks\": 4, ", "\"ranks\": 4, \"copy_engines\": {\"seconds\": 0}, ",
                 "\"copy_engines\": expected a member \"bytes_per_second\""},
        Misspelt{"\"b\",", "\"b\", \"copy_engines\": {},",
                 "link \"b\": \"copy_engines\": expected it in the first link only"},
        Misspelt{"\"ranks\": 4, ", "", "link \"a\": only the last link may omit \"ranks\""},
        Misspelt{"\"b\",", "\"b\", \"ranks\": 6,",
                 "link \"b\": \"ranks\": expected a multiple of the 4 ranks of the previous link, "
                 "larger, and at most 2^32, found the number 6"},
        Misspelt{"[{\"name\": \"P\", \"seconds\": 0}]", "[]",
                 "\"protocols\": expected a non-empty list, found an empty list"},
        Misspelt{"[{\"name\": \"P\", \"seconds\": 0}]", "[{\"name\": \"Q\", \"seconds\": 0}]",
                 "link \"a\": protocol \"P\": expected one of the cluster's"},
        Misspelt{"\"least_ranks\": 2", "\"least_ranks\": 1",
                 "\"least_ranks\": expected a whole number from 2 to 2^32, found the number 1"},
        Misspelt{
            "\"from_bytes\": 5", "\"from_bytes\": 0",
            "\"from_bytes\": expected 0 in the first round and more in each, found the number 0"}));

TEST(ClusterFile, PlainOneIsRead) {
  EXPECT_EQ(problemOf(plainFile), "");
  EXPECT_NE(problemOf("").find("not JSON"), std::string::npos);
  EXPECT_THROW(readCluster(FSDPRT_SCRATCH "/no-such-cluster.json"), Error);
}

/// Returns a toy artifact without code. Without code, an artifact can have any number of ranks.
static std::shared_ptr<const Artifact> toy(const ToyOptions &options) {
  auto file = pack(toyManifest(options), {});
  return Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
}

static std::string refusal(const Artifact &artifact, const Cluster &cluster) {
  try {
    simulate(artifact, cluster);
  } catch (const Error &error) {
    return error.message;
  }
  return "";
}

TEST(Simulation, NeedsLinksForAllRanks) {
  auto artifact = toy({4, 2});
  EXPECT_NE(refusal(*artifact, plainCluster({link("a", 4, 0, 1e9)}))
                .find("expected links that join the 8 ranks of the mesh replicate=4,shard=2, found "
                      "links of 4"),
            std::string::npos);
  EXPECT_EQ(refusal(*artifact, plainCluster({link("a", 8, 0, 1e9)})), "");
}

TEST(Simulation, NeedsRanksThatAreAlike) {
  std::string text =
      refusal(*toy({2, 6}), plainCluster({link("a", 4, 0, 1e9), link("b", UINT64_MAX, 0, 1e9)}));
  EXPECT_NE(text.find("link \"a\" joins 4 ranks each, and groups of the mesh replicate=2,shard=6 "
                      "span 6: expected one of the two numbers to divide the other"),
            std::string::npos)
      << text;
  EXPECT_EQ(
      refusal(*toy({2, 6}), plainCluster({link("a", 3, 0, 1e9), link("b", UINT64_MAX, 0, 1e9)})),
      "");
}

// On every cluster, a step takes at least as long as its computation, at least as long as its
// communication, and at most as long as both together.
TEST(Simulation, StaysBetweenItsBounds) {
  std::mt19937 random(1);
  auto draw = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  for (bool asynchronous : {false, true}) {
    auto artifact = toy({4, 2, asynchronous});
    for (int i = 0; i < 200; ++i) {
      Cluster cluster = plainCluster({link("a", 4, draw(1e-7, 1e-3), draw(1e5, 1e10)),
                                      link("b", 8, draw(1e-7, 1e-3), draw(1e5, 1e10))});
      cluster.memoryBytesPerSecond = draw(1e5, 1e10);
      cluster.launchSeconds = draw(1e-7, 1e-3);
      cluster.collectiveSeconds = draw(1e-7, 1e-3);
      Simulation step = simulate(*artifact, cluster);
      double alone = 0, exposed = 0;
      uint64_t runs = 0;
      for (const SimulatedCollective &row : step.collectives) {
        alone += row.alone;
        exposed += row.exposed;
        runs += row.runs;
      }
      EXPECT_NEAR(step.seconds, step.compute + step.exposed, 1e-9);
      EXPECT_NEAR(step.exposed, exposed, 1e-9);
      EXPECT_GE(step.seconds, std::max({step.compute, step.busy[0], step.busy[1]}) - 1e-9);
      EXPECT_LE(step.seconds, step.compute + alone +
                                  static_cast<double>(runs) * cluster.collectiveSeconds + 1e-9);
      EXPECT_EQ(step.ranks, 8u);
    }
  }
}

// The work of a kernel is the integral, over its time, of the part of the multiprocessors that
// collectives leave free at each moment.
TEST(Simulation, CollectivesSlowKernelsThatRunAtTheSameTime) {
  std::mt19937 random(1);
  double slowed = 0;
  for (int i = 0; i < 100; ++i) {
    auto manifest = overlappingToy();
    auto file = pack(manifest, {});
    Cluster cluster = plainCluster({link("a", 4, 0, std::pow(10, 4 + random() % 6)),
                                    link("b", 8, 0, std::pow(10, 4 + random() % 6))});
    cluster.memoryBytesPerSecond = 1e15;
    cluster.multiprocessors = 100;
    cluster.links[0].multiprocessors = 30;
    cluster.links[1].multiprocessors = 20;
    auto artifact = Artifact::fromMemory(file.data(), file.size(), "toy.fsdp"); // owns the names
    Simulation step = simulate(*artifact, cluster);
    std::vector<fsdprt_trace_event> transfers;
    for (const fsdprt_trace_event &event : step.events)
      if (event.lane != FSDPRT_LANE_COMPUTE)
        transfers.push_back(event);
    for (const fsdprt_trace_event &event : step.events) {
      if (event.lane != FSDPRT_LANE_COMPUTE || std::string(event.kind) == "collective" ||
          std::string(event.name) == "fill")
        continue;
      auto work = static_cast<double>(event.end - event.begin);
      for (const fsdprt_trace_event &other : transfers) {
        double common = static_cast<double>(std::min(event.end, other.end)) -
                        static_cast<double>(std::max(event.begin, other.begin));
        // Groups of two neighbours use link a, and groups of four ranks with stride 2 use link b.
        bool isInner = std::string(other.name) != "all_reduce";
        work -= std::max(common, 0.0) * (isInner ? 0.3 : 0.2);
      }
      EXPECT_NEAR(work, 1e6, 20) << event.name;
    }
    EXPECT_GE(step.slowed, -1e-12);
    slowed += step.slowed;
  }
  EXPECT_GT(slowed, 1e-3);
}

// The events of the compute lane follow one another without gaps, as in the trace of a session.
TEST(Simulation, EventsCoverTheStep) {
  auto artifact = toy({1, 2});
  Simulation step = simulate(*artifact, plainCluster({link("a", 2, 1e-5, 1e6)}));
  uint64_t end = 0, sum = 0;
  for (const fsdprt_trace_event &event : step.events)
    if (event.lane == FSDPRT_LANE_COMPUTE) {
      EXPECT_GE(event.begin, end);
      EXPECT_LE(event.begin, end + 1);
      sum += event.end - event.begin;
      end = event.end;
    }
  EXPECT_NEAR(static_cast<double>(end), step.seconds * 1e9, 1);
  EXPECT_NEAR(static_cast<double>(sum), step.seconds * 1e9,
              static_cast<double>(step.events.size()));
}

// The time of a kernel is the time that the memory needs to move `moved_bytes` bytes. If
// `moved_bytes` is 0, the bytes of the kernel's bindings are used instead.
TEST(Simulation, CountsWhatKernelsMove) {
  Cluster cluster = plainCluster({link("a", 2, 1e-5, 1e6)});
  cluster.memoryBytesPerSecond = 1e3;
  auto computeOf = [&](uint64_t moved) {
    auto manifest = toyManifest({});
    for (auto &kernel : manifest.kernels)
      kernel->moved_bytes = moved;
    auto file = pack(manifest);
    return simulate(*Artifact::fromMemory(file.data(), file.size(), "toy.fsdp"), cluster).compute;
  };
  double once = computeOf(100000), twice = computeOf(200000), bindings = computeOf(0);
  EXPECT_GT(twice - once, 99);
  EXPECT_GT(once, bindings);
  EXPECT_GT(bindings, 0);
}

TEST(Simulation, ReadsProgramsWithoutCode) {
  auto artifact = toy({});
  auto file = pack(toyManifest({}));
  EXPECT_FALSE(artifact->hasCode());
  Cluster cluster = plainCluster({link("a", 2, 1e-5, 1e6)});
  EXPECT_EQ(simulate(*artifact, cluster).seconds,
            simulate(*Artifact::fromMemory(file.data(), file.size(), "toy.fsdp"), cluster).seconds);
  try {
    Session session(artifact, {});
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(error.message.find("expected the kernels' code, found none"), std::string::npos);
  }
}
