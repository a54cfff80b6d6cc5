//===- ConformanceTest.cpp - Rules of communicators -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the rules of Communicator.h on every registered backend. The contents of a source depend
// only on the rank and the collective, so that each rank can compute the sources of all ranks. A
// rank can therefore compute the expected contents of its target, and compares the target bit for
// bit with the expected contents. In some tests, one rank does not arrive at a collective.
//
//===----------------------------------------------------------------------===//

#include "test/collectives/Conformance.h"
#include "core/FutexEvent.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;
using fb::CollectiveKind;
using fb::Reduction;
using Bytes = std::vector<std::byte>;

std::vector<std::unique_ptr<Backend>> &fsdprt::test::backends() {
  static std::vector<std::unique_ptr<Backend>> all;
  return all;
}

namespace {
constexpr CollectiveKind allKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                       CollectiveKind::all_reduce, CollectiveKind::broadcast,
                                       CollectiveKind::shift};

Mesh meshOf(std::vector<uint64_t> sizes, std::vector<Mesh::Neighbours> neighbours = {}) {
  std::vector<Mesh::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({i == 0 ? "a" : "b", sizes[i]});
  return Mesh(axes, std::move(neighbours));
}

CollectiveKey keyOf(CollectiveKind kind, uint64_t count, DType type = DType::f32,
                    Reduction reduction = Reduction::sum, std::vector<uint32_t> axes = {0},
                    uint32_t root = 0) {
  return {kind, reduction, type, count, root, std::move(axes), 42, "test", "h.0"};
}

/// Returns random values of the type, some of which are -0.
Bytes valuesOf(const CollectiveKey &key, uint64_t count, uint32_t rank, uint32_t round) {
  std::mt19937 random(rank * 1000003 + round * 7919 + static_cast<uint32_t>(key.count));
  std::normal_distribution<float> normal;
  uint64_t size = sizeOf(key.dtype);
  Bytes result(count * size);
  for (uint64_t i = 0; i < count; ++i)
    if (isFloat(key.dtype))
      storeElement(key.dtype, random() % 16 == 0 ? -0.0 : normal(random), result.data() + i * size);
    else
      for (uint64_t b = 0; b < size; ++b)
        result[i * size + b] = static_cast<std::byte>(random());
  return result;
}

/// Computes one element of the expected result of a reduction, in the order of rule (R5).
void expectedSum(const CollectiveKey &key, const std::vector<const std::byte *> &sources,
                 std::byte *to) {
  auto inOrder = [&](auto zero) {
    auto sum = zero;
    for (const std::byte *source : sources)
      sum += static_cast<decltype(zero)>(loadElement(key.dtype, source));
    if (key.reduction == Reduction::avg)
      sum *= decltype(zero)(1) / static_cast<decltype(zero)>(sources.size());
    storeElement(key.dtype, sum, to);
  };
  key.dtype == DType::f64 ? inOrder(0.0) : inOrder(0.0f);
}

/// Runs a collective of a meeting on one rank, and checks the result.
class Exchange {
public:
  Exchange(Attendee &at, uint32_t collective, uint64_t offset, bool inPlace = false)
      : at(at), collective(collective), key(at.communicator.getKey(collective)), inPlace(inPlace) {
    members = at.communicator.getMesh().group(at.rank, key.axes);
    own =
        static_cast<uint64_t>(std::find(members.begin(), members.end(), at.rank) - members.begin());
    sent = key.count * (key.kind == CollectiveKind::reduce_scatter ? members.size() : 1);
    received = key.count * (key.kind == CollectiveKind::all_gather ? members.size() : 1);
    uint64_t size = sizeOf(key.dtype);
    target = at.arena.at(offset);
    source = at.arena.at(offset + (received * size + 63) / 64 * 64);
    if (inPlace)
      source = key.kind == CollectiveKind::all_gather ? target + own * key.count * size : target;
    end = offset + (received * size + 63) / 64 * 64 + (sent * size + 63) / 64 * 64;
  }

  void start(uint32_t round) {
    Bytes values = valuesOf(key, sent, at.rank, round);
    if (!inPlace)
      std::memset(target, 0xee, received * sizeOf(key.dtype));
    if (!values.empty())
      std::memcpy(source, values.data(), values.size());
    at.communicator.start(collective, at.rank, source, target);
  }
  void wait() { at.communicator.wait(collective, at.rank, at.pool); }
  /// Overwrites the source. Rule (R2) allows a rank to write to its source after wait() has
  /// returned.
  void spoilSource() { std::memset(source, 0x55, inPlace ? 0 : sent * sizeOf(key.dtype)); }

  bool isRight(uint32_t round) const {
    Bytes expected = expectedTarget(round);
    if (expected.empty() || std::memcmp(target, expected.data(), expected.size()) == 0)
      return true;
    return !at.sumsInOrder && isFloat(key.dtype) && isNear(expected);
  }
  uint64_t endOffset() const { return end; }

private:
  /// Compares the target with the expected sums. The tolerance suffices for additions in any order,
  /// since the elements of sources have a magnitude of about 1.
  bool isNear(const Bytes &expected) const {
    double epsilon = key.dtype == DType::f64   ? 0x1p-52
                     : key.dtype == DType::f32 ? 0x1p-23
                     : key.dtype == DType::f16 ? 0x1p-10
                                               : 0x1p-7;
    if (key.kind == CollectiveKind::all_gather || key.hasOneSender())
      return false;
    for (size_t i = 0; i < expected.size(); i += sizeOf(key.dtype)) {
      double found = loadElement(key.dtype, target + i),
             wanted = loadElement(key.dtype, expected.data() + i);
      if (!(std::abs(found - wanted) <= 8 * epsilon * static_cast<double>(members.size())))
        return false;
    }
    return true;
  }
  Bytes expectedTarget(uint32_t round) const {
    uint64_t size = sizeOf(key.dtype);
    std::vector<Bytes> sources;
    for (uint32_t member : members)
      sources.push_back(valuesOf(key, sent, member, round));
    Bytes expected(received * size);
    for (uint64_t i = 0; i < received; ++i) {
      std::byte *to = expected.data() + i * size;
      if (key.kind == CollectiveKind::all_gather) {
        std::memcpy(to, sources[i / key.count].data() + i % key.count * size, size);
      } else if (key.kind == CollectiveKind::broadcast) {
        std::memcpy(to, sources[key.root].data() + i * size, size);
      } else if (key.kind == CollectiveKind::shift) {
        uint64_t before = (own + members.size() - 1) % members.size();
        std::memcpy(to, sources[before].data() + i * size, size);
      } else {
        uint64_t from = key.kind == CollectiveKind::reduce_scatter ? own * key.count + i : i;
        std::vector<const std::byte *> parts;
        for (const Bytes &each : sources)
          parts.push_back(each.data() + from * size);
        expectedSum(key, parts, to);
      }
    }
    return expected;
  }

  Attendee &at;
  uint32_t collective;
  const CollectiveKey &key;
  bool inPlace;
  std::vector<uint32_t> members;
  uint64_t own, sent, received, end;
  std::byte *source, *target;
};

std::string nameOf(const CollectiveKey &key) {
  return format("%s of %llu x %s, axes %zu, first %u", fb::EnumNameCollectiveKind(key.kind),
                (unsigned long long)key.count, fsdprt::nameOf(key.dtype), key.axes.size(),
                key.axes.empty() ? 0 : key.axes[0]);
}

class Conformance : public testing::TestWithParam<size_t> {
protected:
  Backend &backend() { return *backends()[GetParam()]; }

  void meet(const Meeting &meeting, const std::function<void(Attendee &)> &body) {
    if (!backend().canMeet(static_cast<uint32_t>(meeting.mesh.ranks())))
      return;
    backend().meet(meeting, [&](Attendee &at) {
      try {
        body(at);
      } catch (const Error &error) {
        ADD_FAILURE() << "rank " << at.rank << ": " << error.what();
        at.communicator.abort(FSDPRT_FAILED);
      }
    });
  }

  /// Runs the collectives of the meeting one after another. Each collective runs twice.
  void checkEach(const Meeting &meeting) {
    meet(meeting, [&](Attendee &at) {
      for (uint32_t c = 0; c < meeting.keys.size(); ++c)
        for (bool inPlace : {false, true})
          for (uint32_t round = 0; round < 2; ++round) {
            if (inPlace && meeting.keys[c].kind != CollectiveKind::all_reduce &&
                meeting.keys[c].kind != CollectiveKind::all_gather)
              continue;
            Exchange exchange(at, c, 0, inPlace);
            exchange.start(round);
            exchange.wait();
            EXPECT_TRUE(exchange.isRight(round))
                << "rank " << at.rank << ", " << nameOf(meeting.keys[c])
                << (inPlace ? ", in place" : "");
          }
    });
  }
};
} // namespace

TEST_P(Conformance, KindsTypesAndSizes) {
  for (uint64_t ranks = 1; ranks <= 5; ++ranks) {
    Meeting meeting{meshOf({ranks}), {}};
    for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (uint64_t count : {0, 1, 15, 64, 2049})
        for (CollectiveKind kind : allKinds)
          for (Reduction reduction : {Reduction::sum, Reduction::avg})
            meeting.keys.push_back(
                keyOf(kind, count, type, reduction, {0}, static_cast<uint32_t>(ranks - 1)));
    checkEach(meeting);
  }
}

TEST_P(Conformance, IntegersAreMoved) {
  Meeting meeting{meshOf({3}), {}};
  for (DType type : {DType::i64, DType::i32, DType::i16, DType::i8, DType::i1})
    for (CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::shift})
      meeting.keys.push_back(keyOf(kind, 37, type, Reduction::sum, {0}, 1));
  checkEach(meeting);
}

TEST_P(Conformance, GroupsOnTwoAxes) {
  Meeting meeting{meshOf({2, 2}), {}};
  for (std::vector<uint32_t> axes : {std::vector<uint32_t>{0}, {1}, {0, 1}, {}})
    for (CollectiveKind kind : allKinds)
      meeting.keys.push_back(keyOf(kind, 333, DType::bf16, Reduction::avg, axes));
  checkEach(meeting);
}

TEST_P(Conformance, NeighboursOnAnAxis) {
  Meeting meeting{meshOf({4}, {{0, 2}}), {}};
  for (CollectiveKind kind : allKinds)
    meeting.keys.push_back(keyOf(kind, 65, DType::f32, Reduction::sum, {1}));
  checkEach(meeting);
}

TEST_P(Conformance, LargeOnesOnWorkers) {
  for (uint64_t ranks : {2, 3}) {
    Meeting meeting{meshOf({ranks}), {}, 1 << 20, 60, 3};
    for (CollectiveKind kind : allKinds)
      meeting.keys.push_back(keyOf(kind, 20011));
    checkEach(meeting);
  }
}

// Tests rule (R6): ranks wait for collectives in another order than they have started them.
TEST_P(Conformance, ManyInFlight) {
  Meeting meeting{meshOf({3}), {}, 4 << 20};
  for (uint32_t i = 0; i < 32; ++i)
    meeting.keys.push_back(keyOf(allKinds[i % 5], i % 7 * 113, i % 3 ? DType::f32 : DType::bf16));
  meet(meeting, [&](Attendee &at) {
    std::vector<std::unique_ptr<Exchange>> all;
    uint64_t offset = 0;
    for (uint32_t c = 0; c < meeting.keys.size(); ++c) {
      all.push_back(std::make_unique<Exchange>(at, c, offset));
      offset = all.back()->endOffset();
    }
    for (uint32_t round = 0; round < 4; ++round) {
      for (auto &exchange : all)
        exchange->start(round);
      for (size_t i = 0; i < all.size(); ++i)
        all[(i * 5 + 3) % all.size()]->wait();
      for (uint32_t c = 0; c < all.size(); ++c)
        EXPECT_TRUE(all[c]->isRight(round))
            << "rank " << at.rank << ", " << nameOf(meeting.keys[c]);
    }
  });
}

// Tests rule (R2): wait() must not return on a fast rank while a slow rank still reads the source
// of the fast rank.
TEST_P(Conformance, SourceIsFreeBehindTheWait) {
  Meeting meeting{meshOf({3}), {}};
  for (CollectiveKind kind : allKinds)
    meeting.keys.push_back(keyOf(kind, 50));
  meet(meeting, [&](Attendee &at) {
    uint32_t wrong = 0;
    for (uint32_t round = 0; round < 300; ++round)
      for (uint32_t c = 0; c < meeting.keys.size(); ++c) {
        Exchange exchange(at, c, 0);
        exchange.start(round);
        exchange.wait();
        exchange.spoilSource();
        wrong += !exchange.isRight(round);
      }
    EXPECT_EQ(wrong, 0u) << "rank " << at.rank;
  });
}

TEST_P(Conformance, CountsBytes) {
  Meeting meeting{meshOf({2}),
                  {keyOf(CollectiveKind::all_gather, 100), keyOf(CollectiveKind::all_reduce, 10)}};
  meet(meeting, [&](Attendee &at) {
    for (uint32_t c = 0; c < 2; ++c) {
      Exchange exchange(at, c, 0);
      exchange.start(0);
      exchange.wait();
    }
    if (at.rank != at.communicator.firstRank())
      return;
    EXPECT_EQ(at.communicator.exchangedBytes()[static_cast<size_t>(CollectiveKind::all_gather)],
              800u);
    EXPECT_EQ(at.communicator.exchangedBytes()[static_cast<size_t>(CollectiveKind::all_reduce)],
              40u);
  });
}

// Tests that the comparison of results finds an injected fault.
TEST_P(Conformance, DropsAContribution) {
  Meeting meeting{meshOf({2}), {keyOf(CollectiveKind::reduce_scatter, 9)}};
  meeting.prepare = [](Communicator &communicator) { communicator.dropContribution(0, 1); };
  meet(meeting, [&](Attendee &at) {
    Exchange exchange(at, 0, 0);
    exchange.start(0);
    exchange.wait();
    if (at.rank == 0)
      EXPECT_FALSE(exchange.isRight(0));
  });
}

TEST_P(Conformance, ExchangesBetweenPrograms) {
  meet({meshOf({4}), {}}, [&](Attendee &at) {
    if (at.rank != at.communicator.firstRank())
      // One thread per process calls exchange().
      return;
    uint32_t processes = at.communicator.processes(), each = 4 / processes;
    EXPECT_EQ(at.communicator.localRanks(), each);
    for (uint32_t round = 0; round < 50; ++round) {
      uint32_t mine[3] = {at.rank, round, 77};
      std::vector<uint32_t> all(3 * processes);
      at.communicator.exchange(mine, sizeof mine, all.data());
      for (uint32_t p = 0; p < processes; ++p)
        EXPECT_EQ(std::vector<uint32_t>(&all[3 * p], &all[3 * p] + 3),
                  (std::vector<uint32_t>{p * each, round, 77}));
      at.communicator.barrier();
    }
  });
}

TEST_P(Conformance, CollectsAtRankZero) {
  meet({meshOf({3}), {}}, [&](Attendee &at) {
    if (at.rank != at.communicator.firstRank())
      return;
    // The data of the largest size does not fit into one message.
    for (size_t bytes : {0, 5, 3000001}) {
      for (uint32_t rank = 0; rank < 3; ++rank) {
        Bytes data(bytes, static_cast<std::byte>(rank + 1)), into(bytes);
        if (bytes)
          data[bytes - 1] = std::byte{99};
        at.communicator.collect(rank, at.communicator.isLocal(rank) ? data.data() : nullptr, bytes,
                                into.data());
        if (at.communicator.isRoot())
          EXPECT_EQ(into, data);
      }
    }
  });
}

TEST_P(Conformance, NamesWhoIsMissing) {
  Meeting meeting{
      meshOf({3}), {keyOf(CollectiveKind::all_reduce, 1)}, 1 << 20, /*timeoutSeconds=*/1};
  std::atomic<int> done{0};
  meet(meeting, [&](Attendee &at) {
    bool waits = at.rank == 0 || (at.rank == 1 && backend().isOneProcess());
    if (!waits) {
      at.communicator.getWatchdog().beginRun(at.rank, "step", 7);
      at.communicator.getWatchdog().beat(at.rank, 12, "h.0 mlp");
      double limit = monotonicSeconds() + 30;
      while (!at.communicator.getWatchdog().hasFailed() && monotonicSeconds() < limit)
        std::this_thread::sleep_for(
            std::chrono::milliseconds(20)); // the process runs, but its rank does not start the
                                            // collective
      return;
    }
    at.communicator.start(0, at.rank, at.arena.at(0), at.arena.at(64));
    std::string message;
    try {
      at.communicator.wait(0, at.rank, at.pool);
    } catch (const Abandoned &) {
      // Another waiting rank has already reported the failure.
      EXPECT_TRUE(backend().isOneProcess());
      message = "abandoned";
    } catch (const Error &error) {
      message = error.message;
      EXPECT_EQ(error.status, FSDPRT_HUNG);
      EXPECT_NE(message.find("collective 42 (all_reduce 'test', unit 'h.0')"), std::string::npos)
          << message;
      EXPECT_NE(message.find("rank 2 (last seen in step 7 at command 12, 'h.0 mlp')"),
                std::string::npos)
          << message;
      ++done;
    }
    EXPECT_FALSE(message.empty());
    at.communicator.abort(FSDPRT_FAILED);
  });
  if (backend().canMeet(3) && backend().isOneProcess())
    EXPECT_GE(done.load(), 1);
}

TEST_P(Conformance, WaitsForASlowRankThatMakesProgress) {
  Meeting meeting{
      meshOf({2}), {keyOf(CollectiveKind::all_gather, 3)}, 1 << 20, /*timeoutSeconds=*/3};
  meet(meeting, [&](Attendee &at) {
    // Rank 1 arrives after the time limit, but reports progress until then.
    for (int i = 0; at.rank == 1 && i < 70; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      at.communicator.getWatchdog().beat(1);
    }
    Exchange exchange(at, 0, 0);
    exchange.start(0);
    exchange.wait();
    EXPECT_TRUE(exchange.isRight(0));
  });
}

TEST_P(Conformance, AbortEndsWaits) {
  Meeting meeting{
      meshOf({2}), {keyOf(CollectiveKind::all_gather, 3)}, 1 << 20, /*timeoutSeconds=*/120};
  meet(meeting, [&](Attendee &at) {
    if (at.rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      at.communicator.abort(FSDPRT_FAILED);
      return;
    }
    at.communicator.start(0, 0, at.arena.at(0), at.arena.at(64));
    EXPECT_THROW(at.communicator.wait(0, 0, at.pool), Abandoned);
    EXPECT_THROW(at.communicator.poll(), Abandoned);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance, testing::Range<size_t>(0, backends().size()),
                         [](const auto &info) {
                           return std::string(backends()[info.param]->name());
                         });
