//===- CpuBinding.cpp - One CPU for each thread -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/CpuBinding.h"
#include <sched.h>

using namespace fsdprt;

CpuBinding::CpuBinding(uint64_t threads, uint64_t first) {
  // A machine with more than CPU_SETSIZE (1,024) CPUs has no binding.
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
      static_cast<uint64_t>(CPU_COUNT(&allowed)) != threads || first >= threads)
    return;
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed))
      cpus.push_back(cpu);
  cpus.erase(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(first));
}

void CpuBinding::bind(uint32_t number) const {
  if (number >= cpus.size())
    return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpus[number], &own);
  (void)sched_setaffinity(0, sizeof(own), &own);
}
