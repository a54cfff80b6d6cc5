//===- Library.cpp - Matrix products by oneDNN ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Peak.h"

#ifdef FSDP_HAVE_DNNL
#include <ctime>
#include <dlfcn.h>
#include <dnnl.hpp>

/// Sets the number of OpenMP threads. oneDNN computes on these threads.
static void setThreads(int threads) {
  static void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (auto set = reinterpret_cast<void (*)(int)>(library ? dlsym(library, "omp_set_num_threads")
                                                         : nullptr))
    set(threads);
}

static double now(bool cpuTime) {
  timespec time;
  clock_gettime(cpuTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

std::vector<double> timeLibrary(bool bf16, bool lhsTransposed, bool rhsTransposed, int64_t m,
                                int64_t n, int64_t k, void *a, void *b, float *c, int threads,
                                int runs, bool cpuTime) {
  using namespace dnnl;
  setThreads(threads);
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  auto describe = [](int64_t rows, int64_t cols, memory::data_type type, bool transposed) {
    memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{cols, 1};
    return memory::desc({rows, cols}, type, strides);
  };
  memory::desc lhs = describe(m, k, type, lhsTransposed), rhs = describe(k, n, type, rhsTransposed),
               out = describe(m, n, memory::data_type::f32, false);
  matmul product({{lhs, rhs, out}, cpu});
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(lhs, cpu, a)},
                                               {DNNL_ARG_WEIGHTS, memory(rhs, cpu, b)},
                                               {DNNL_ARG_DST, memory(out, cpu, c)}};
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    double start = now(cpuTime);
    product.execute(queue, arguments);
    queue.wait();
    times.push_back(now(cpuTime) - start);
  }
  return times;
}

std::string describeLibrary() {
  const dnnl_version_t *version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}
#else
std::vector<double> timeLibrary(bool, bool, bool, int64_t, int64_t, int64_t, void *, void *,
                                float *, int, int, bool) {
  return {};
}
std::string describeLibrary() { return "without oneDNN"; }
#endif
