//===- CpuBindingTest.cpp - Binding of threads to CPUs ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/CpuBinding.h"
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

using namespace fsdprt;

static cpu_set_t allowedCpus() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return allowed;
}

TEST(CpuBinding, BindsOneThreadToEachCpu) {
  cpu_set_t all = allowedCpus(), bound;
  CPU_ZERO(&bound);
  uint32_t count = static_cast<uint32_t>(CPU_COUNT(&all));
  CpuBinding binding(count, 0);
  ASSERT_TRUE(binding.isActive());
  for (uint32_t thread = 0; thread < count; ++thread)
    std::thread([&] {
      binding.bind(thread);
      cpu_set_t own = allowedCpus();
      EXPECT_EQ(CPU_COUNT(&own), 1);
      CPU_OR(&bound, &bound, &own);
    }).join();
  EXPECT_TRUE(CPU_EQUAL(&bound, &all));
  cpu_set_t after = allowedCpus();
  EXPECT_TRUE(CPU_EQUAL(&after, &all)) << "the calling thread is not bound";
}

TEST(CpuBinding, CountsThreadsOfOtherProcesses) {
  cpu_set_t all = allowedCpus();
  uint32_t count = static_cast<uint32_t>(CPU_COUNT(&all));
  CpuBinding binding(count, count - 1);
  ASSERT_TRUE(binding.isActive());
  std::thread([&] {
    binding.bind(0);
    cpu_set_t own = allowedCpus();
    EXPECT_EQ(CPU_COUNT(&own), 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      EXPECT_FALSE(CPU_ISSET(cpu, &own) && CPU_ISSET(cpu + 1, &all)) << "expected the last CPU";
  }).join();
}

TEST(CpuBinding, BindsNothingForOtherNumbersOfThreads) {
  cpu_set_t all = allowedCpus();
  uint32_t count = static_cast<uint32_t>(CPU_COUNT(&all));
  for (const CpuBinding &binding : {CpuBinding(), CpuBinding(count + 1, 0),
                                    CpuBinding(count - 1, 0), CpuBinding(count, count)}) {
    EXPECT_FALSE(binding.isActive());
    std::thread([&] {
      binding.bind(0);
      cpu_set_t own = allowedCpus();
      EXPECT_TRUE(CPU_EQUAL(&own, &all));
    }).join();
  }
}
