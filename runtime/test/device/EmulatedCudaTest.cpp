//===- EmulatedCudaTest.cpp - The emulated CUDA driver ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that the emulated driver reports wrong uses of streams, events, memory and graphs, and
// does not report correct uses.
//
//===----------------------------------------------------------------------===//

#include "test/device/EmulatedCuda.h"
#include "device/cuda/CudaHeartbeat.h"
#include "device/cuda/CudaRecording.h"
#include "device/cuda/CudaTimeline.h"
#include <cstring>
#include <ctime>
#include <gtest/gtest.h>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
uint64_t nanosecondsNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

constexpr uint64_t bytes = 4096;
constexpr CudaResult unsupportedInCapture = CudaResult(900), unjoined = CudaResult(904),
                     spoilt = CudaResult(901), invalidHandle = CudaResult(400),
                     failedForGood = CudaResult(719);

class EmulatedCuda : public testing::Test {
protected:
  void SetUp() override {
    for (CudaPointer *each : {&a, &b})
      *each = gpu.allocate(bytes);
    pinned = static_cast<std::byte *>(gpu.pin(bytes));
  }
  void TearDown() override {
    resetEmulatedCuda();
    for (CudaPointer each : {a, b})
      cuda.memFree(each);
    cuda.memFreeHost(pinned);
  }
  CudaStream first() const { return queue.stream(CudaQueue::compute); }
  CudaStream second() const { return queue.stream(CudaQueue::gather); }
  CudaResult fill(CudaPointer to, unsigned char value, CudaStream stream) const {
    return cuda.memsetAsync(to, value, bytes, stream);
  }
  CudaResult copy(CudaPointer to, CudaPointer from, CudaStream stream) const {
    return cuda.memcpyAsync(to, from, bytes, stream);
  }
  CudaPointer host() const { return reinterpret_cast<CudaPointer>(pinned); }
  CudaResult await(CudaStream stream) const {
    CudaResult result;
    while ((result = cuda.streamQuery(stream)) == cudaNotReady)
      ;
    return result;
  }
  template <typename Body>
  std::string said(Body body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }

  EmulatedGpuContext gpu;
  const CudaDriver &cuda = *gpu.cuda;
  CudaQueue queue{cuda, 0, gpu.context, gpu.sums.get()};
  CudaMark mark{queue};
  CudaPointer a = 0, b = 0;
  std::byte *pinned = nullptr;
};

TEST_F(EmulatedCuda, WorkIsDoneLate) {
  std::memset(pinned, 0, bytes);
  ASSERT_EQ(fill(a, 7, first()), cudaOk);
  ASSERT_EQ(copy(host(), a, first()), cudaOk);
  EXPECT_EQ(pinned[0], std::byte(0)) << "nobody has waited yet";
  EXPECT_EQ(cuda.streamQuery(first()), cudaNotReady);
  EXPECT_EQ(await(first()), cudaOk);
  EXPECT_EQ(pinned[0], std::byte(7));
  EXPECT_EQ(pinned[bytes - 1], std::byte(7));
}

/// The code of a kernel is loaded when the kernel is looked up, so that a launch allocates no
/// memory.
TEST_F(EmulatedCuda, CodeIsLoadedWhenItIsFound) {
  auto freeBytes = [&] {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuda.memGetInfo(&free, &total), cudaOk);
    return free;
  };
  CudaModule modules[2] = {};
  size_t before = freeBytes();
  for (CudaModule &module : modules)
    ASSERT_EQ(cuda.moduleLoadData(&module, CudaSums::ptx().c_str()), cudaOk);
  EXPECT_EQ(freeBytes(), before) << "code is loaded lazily";
  CudaFunction function = cuda.load(modules[0], "fsdprt_sum_f32", "find a kernel");
  size_t loaded = freeBytes();
  EXPECT_LT(loaded, before);
  CudaPointer sources[CudaSums::mostSources] = {a}, target = b;
  uint32_t members = 1;
  double factor = 1;
  uint64_t vectors = 1, elements = 4;
  void *arguments[] = {sources, &target, &members, &factor, &vectors, &elements};
  ASSERT_EQ(fill(a, 0, first()), cudaOk);
  ASSERT_EQ(cuda.launchKernel(function, 1, 1, 1, 32, 1, 1, 0, first(), arguments, nullptr), cudaOk);
  EXPECT_EQ(await(first()), cudaOk);
  EXPECT_EQ(freeBytes(), loaded);
  ASSERT_EQ(cuda.moduleGetFunction(&function, modules[1], "fsdprt_sum_f32"), cudaOk);
  ASSERT_EQ(cuda.launchKernel(function, 1, 1, 1, 32, 1, 1, 0, first(), arguments, nullptr), cudaOk);
  EXPECT_EQ(await(first()), cudaOk);
  EXPECT_LT(freeBytes(), loaded) << "one that was not loaded takes memory at its first launch";
  for (CudaModule module : modules)
    cuda.moduleUnload(module);
}

TEST_F(EmulatedCuda, AnEventOrdersStreams) {
  ASSERT_EQ(fill(a, 7, first()), cudaOk);
  mark.record(CudaQueue::compute);
  mark.hold(queue, CudaQueue::gather);
  ASSERT_EQ(copy(b, a, second()), cudaOk);
  mark.record(CudaQueue::gather);
  mark.hold(queue, CudaQueue::compute);
  ASSERT_EQ(fill(a, 8, first()), cudaOk);
  ASSERT_EQ(copy(host(), b, first()), cudaOk);
  EXPECT_EQ(await(first()), cudaOk);
  EXPECT_EQ(pinned[5], std::byte(7));
}

/// A peer may wait for a copy on a stream that nothing has waited for.
TEST_F(EmulatedCuda, WorkThatWaitsForPeersLetsOtherStreamsAdvance) {
  std::memset(pinned, 0, bytes);
  fsdp_emulated_cuda_work work = {"peer",
                                  0,
                                  0,
                                  0,
                                  0,
                                  pinned,
                                  [](void *user) { return user; },
                                  [](void *begun, const void *, void *) {
                                    return int(*static_cast<std::byte *>(begun) == std::byte(7));
                                  }};
  ASSERT_EQ(enqueuePeerWork(first(), work), cudaOk);
  ASSERT_EQ(fill(a, 7, second()), cudaOk);
  ASSERT_EQ(copy(host(), a, second()), cudaOk);
  CudaResult result = cudaNotReady;
  for (int i = 0; i < 100 && result == cudaNotReady; ++i)
    result = cuda.streamQuery(first());
  EXPECT_EQ(result, cudaOk);
  EXPECT_EQ(await(second()), cudaOk);
}

TEST_F(EmulatedCuda, StreamsThatNothingOrdersRace) {
  ASSERT_EQ(fill(a, 7, first()), cudaOk);
  ASSERT_EQ(copy(b, a, second()), cudaOk);
  std::string text = said([&] {
    EXPECT_EQ(await(second()), cudaOk) << "done as if it were first";
    EXPECT_EQ(await(first()), failedForGood);
  });
  EXPECT_NE(text.find("a fill of 4096 bytes (stream"), std::string::npos) << text;
  EXPECT_NE(text.find("writes the bytes from"), std::string::npos) << text;
  EXPECT_NE(text.find("a copy of 4096 bytes (stream"), std::string::npos) << text;
  EXPECT_NE(text.find("read, and nothing orders the two"), std::string::npos) << text;
  EXPECT_EQ(fill(a, 7, first()), failedForGood) << "as on a GPU";
}

/// If the host waits for work and then enqueues more work on another stream, the new work is
/// ordered after the old work.
TEST_F(EmulatedCuda, TheHostOrdersWhatItHasWaitedFor) {
  ASSERT_EQ(fill(a, 7, first()), cudaOk);
  ASSERT_EQ(await(first()), cudaOk);
  ASSERT_EQ(copy(b, a, second()), cudaOk);
  EXPECT_EQ(await(second()), cudaOk);
}

TEST_F(EmulatedCuda, StampsSayWhenWorkWasDone) {
  CudaTimeline timeline(queue, 3);
  for (int run = 0; run < 2; ++run) {
    timeline.begin([] {});
    EXPECT_EQ(timeline.stamp(CudaQueue::compute), 1u);
    ASSERT_EQ(fill(a, 7, first()), cudaOk);
    EXPECT_EQ(timeline.stamp(CudaQueue::compute), 2u);
    EXPECT_EQ(timeline.stamp(CudaQueue::gather), 3u);
    EXPECT_EQ(timeline.stamp(CudaQueue::gather), 0u) << "there were three";
    timespec nap = {0, 20000000};
    nanosleep(&nap, nullptr);
    uint64_t enqueued = nanosecondsNow();
    queue.finish([] {});
    // CUDA reports times as floats, so that the comparison must allow for rounding.
    uint64_t over = nanosecondsNow(), slack = 1000000;
    EXPECT_LE(timeline.timeOf(1), timeline.timeOf(2));
    EXPECT_GE(timeline.timeOf(1) + slack, enqueued) << "done late, and not when it was put there";
    EXPECT_LE(timeline.timeOf(2), over + slack);
  }
}

TEST_F(EmulatedCuda, ThePulseIsFeltWithinAGraph) {
  CudaHeartbeat heartbeat(queue);
  uint32_t before = heartbeat.read();
  for (uint32_t i = 1; i < CudaHeartbeat::launches; ++i)
    heartbeat.count();
  queue.finish([] {});
  EXPECT_EQ(heartbeat.read(), before);
  heartbeat.count();
  EXPECT_EQ(heartbeat.read(), before) << "launched, and not done";
  queue.finish([] {});
  EXPECT_NE(heartbeat.read(), before);
  CudaRecording recording({&queue});
  recording.begin();
  for (uint32_t i = 0; i < 2 * CudaHeartbeat::launches; ++i)
    heartbeat.count();
  recording.end();
  before = heartbeat.read();
  recording.launch();
  queue.finish([] {});
  EXPECT_NE(heartbeat.read(), before);
  heartbeat.begin();
  EXPECT_EQ(heartbeat.read(), 0u);
  for (uint32_t i = 0; i < 3 * CudaHeartbeat::launches; ++i)
    heartbeat.count();
  queue.finish([] {});
  EXPECT_EQ(heartbeat.read(), 3u) << "beats are numbered since then";
}

TEST_F(EmulatedCuda, WhatIsNoPtxIsToldWithItsLine) {
  said([&] {
    try {
      cuda.translate(".version 7.0\n.target sm_80\n.address_size 64\n.vizible .entry e()\n{\n}\n",
                     "a module");
      ADD_FAILURE() << "was taken";
    } catch (const CudaFailure &failure) {
      EXPECT_EQ(failure.result, cudaInvalidPtx);
      EXPECT_NE(failure.message.find("cannot load a module: CUDA reports error 218"),
                std::string::npos)
          << failure.message;
      EXPECT_NE(failure.message.find(": module.ptx:4:"), std::string::npos) << failure.message;
    }
  });
}

TEST_F(EmulatedCuda, AVariableWithAnotherValueIsRefused) {
  for (const char *text :
       {"DEVICES=abc", "DEVICES=-1", "DEVICES=65", "BYTES=1G", "CAPABILITY=9.0", "ORDER=x",
        "NO_PEERS=yes", "FAULT=foo", "FAULT=fail", "FAULT=hang:0", "FAULT=unordered:3"}) {
    std::string pair = text, name = "FSDPRT_EMULATED_CUDA_" + pair.substr(0, pair.find('='));
    setenv(name.c_str(), pair.substr(pair.find('=') + 1).c_str(), 1);
    std::string words = said([&] { EXPECT_EQ(cuda.init(0), cudaInvalidValue) << text; });
    EXPECT_NE(words.find("emulated CUDA: " + name + ": expected "), std::string::npos) << words;
    unsetenv(name.c_str());
  }
  EXPECT_EQ(cuda.init(0), cudaOk);
}

TEST_F(EmulatedCuda, MisuseIsRefused) {
  CudaEvent event = nullptr;
  ASSERT_EQ(cuda.eventCreate(&event, cudaEventNoTiming), cudaOk);
  EXPECT_NE(said([&] {
              EXPECT_EQ(cuda.streamWaitEvent(first(), event, 0), cudaInvalidValue);
            }).find("never recorded"),
            std::string::npos);
  cuda.eventDestroy(event);
  EXPECT_NE(said([&] {
              EXPECT_EQ(cuda.eventRecord(event, first()), invalidHandle);
            }).find("an unknown event"),
            std::string::npos);
  CudaPointer freed = gpu.allocate(bytes);
  ASSERT_EQ(cuda.memFree(freed), cudaOk);
  EXPECT_NE(said([&] {
              EXPECT_EQ(copy(freed, a, first()), cudaInvalidValue);
            }).find("not in one allocation"),
            std::string::npos);
  EXPECT_NE(said([&] {
              EXPECT_EQ(cuda.memFree(freed), cudaInvalidValue);
            }).find("not the address of such an allocation"),
            std::string::npos);
  std::byte pageable[bytes];
  EXPECT_EQ(copy(a, reinterpret_cast<CudaPointer>(pageable), first()), cudaInvalidValue);
  cuda.contextSetCurrent(nullptr);
  EXPECT_NE(said([&] { EXPECT_NE(fill(a, 0, first()), cudaOk); }).find("no current context"),
            std::string::npos);
  cuda.contextSetCurrent(gpu.context);
}

TEST_F(EmulatedCuda, AGraphIsReplayed) {
  CudaGraph graph = nullptr;
  CudaGraphExec runs = nullptr;
  std::memset(pinned, 0, bytes);
  ASSERT_EQ(cuda.streamBeginCapture(first(), cudaCaptureRelaxed), cudaOk);
  ASSERT_EQ(copy(a, host(), first()), cudaOk);
  mark.record(CudaQueue::compute);
  mark.hold(queue, CudaQueue::gather);
  ASSERT_EQ(copy(b, a, second()), cudaOk);
  mark.record(CudaQueue::gather);
  mark.hold(queue, CudaQueue::compute);
  ASSERT_EQ(cuda.streamEndCapture(first(), &graph), cudaOk);
  ASSERT_EQ(cuda.graphInstantiate(&runs, graph, 0), cudaOk);
  ASSERT_EQ(cuda.graphDestroy(graph), cudaOk);
  for (int value : {3, 4}) {
    std::memset(pinned, value, bytes);
    ASSERT_EQ(cuda.graphLaunch(runs, first()), cudaOk);
    ASSERT_EQ(await(first()), cudaOk);
    ASSERT_EQ(copy(host(), b, second()), cudaOk);
    ASSERT_EQ(await(second()), cudaOk);
    EXPECT_EQ(pinned[9], std::byte(value));
  }
  ASSERT_EQ(cuda.graphExecDestroy(runs), cudaOk);
  EXPECT_EQ(cuda.graphLaunch(runs, first()), invalidHandle);
}

TEST_F(EmulatedCuda, ACaptureHasToBeClosed) {
  CudaGraph graph = nullptr;
  fill(a, 1, second());
  mark.record(CudaQueue::gather);
  ASSERT_EQ(cuda.streamBeginCapture(first(), cudaCaptureRelaxed), cudaOk);
  EXPECT_EQ(cuda.streamWaitEvent(first(), nullptr, 0), invalidHandle);
  EXPECT_THROW(mark.hold(queue, CudaQueue::compute), std::exception) << "an event from before";
  EXPECT_EQ(cuda.streamEndCapture(first(), &graph), spoilt);
  ASSERT_EQ(cuda.streamBeginCapture(first(), cudaCaptureRelaxed), cudaOk);
  EXPECT_EQ(cuda.streamQuery(first()), unsupportedInCapture);
  EXPECT_EQ(cuda.streamEndCapture(first(), &graph), spoilt);
  ASSERT_EQ(cuda.streamBeginCapture(first(), cudaCaptureRelaxed), cudaOk);
  mark.record(CudaQueue::compute);
  mark.hold(queue, CudaQueue::gather);
  ASSERT_EQ(fill(a, 1, second()), cudaOk);
  EXPECT_NE(said([&] {
              EXPECT_EQ(cuda.streamEndCapture(first(), &graph), unjoined);
            }).find("a fill of 4096 bytes"),
            std::string::npos);
  EXPECT_THROW(mark.hold(queue, CudaQueue::gather), std::exception)
      << "an event of a capture that is over";
}
} // namespace
