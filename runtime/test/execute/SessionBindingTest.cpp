//===- SessionBindingTest.cpp - Threads of ranks on CPUs --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/Session.h"
#include "testing/toy/ToyModel.h"
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

/// Returns how many threads of this process are bound to one CPU, for each CPU.
static std::map<int, uint32_t> boundThreads() {
  std::map<int, uint32_t> threads;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t cpus;
    pid_t thread = static_cast<pid_t>(std::stol(entry.path().filename()));
    if (sched_getaffinity(thread, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) != 1)
      continue;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &cpus))
        ++threads[cpu];
  }
  return threads;
}

TEST(SessionBinding, BindsThreadsOfRanksBesideTransferWorkers) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  uint32_t cpus = static_cast<uint32_t>(CPU_COUNT(&all));
  if (cpus < 2)
    GTEST_SKIP() << "there is only one CPU";
  ToyOptions options;
  options.shards = cpus % 2 == 0 ? 2 : 1;
  options.workers = cpus;
  auto file = pack(toyManifest(options));
  fsdprt_session_options session = {};
  session.struct_size = sizeof session;
  session.threads_per_rank = cpus / static_cast<uint32_t>(options.shards);
  Session running(Artifact::fromMemory(file.data(), file.size(), "toy.fsdp"), session);
  // Threads bind themselves when they start.
  std::map<int, uint32_t> threads;
  for (int i = 0; i < 3000 && threads.size() < cpus; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    threads = boundThreads();
  }
  EXPECT_EQ(threads.size(), cpus);
  for (const auto &[cpu, count] : threads)
    EXPECT_EQ(count, 1u) << "CPU " << cpu;
}
