//===- ParallelFor.h - Run a function for each item on threads --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_PARALLELFOR_H
#define FSDPRT_TRAIN_PARALLELFOR_H

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace fsdprt {

/// Calls each(i) for every i from 0 to `count` - 1. The calls are distributed over at most as many
/// threads as there are processors. If calls have thrown exceptions, rethrows the exception of the
/// call with the least i. `count` must not be 0.
template <typename Each>
void onThreads(size_t count, Each each) {
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> problems(count);
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      try {
        each(i);
      } catch (...) {
        problems[i] = std::current_exception();
      }
  };
  std::vector<std::thread> threads(
      std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency())) - 1);
  for (std::thread &thread : threads)
    thread = std::thread(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &problem : problems)
    if (problem)
      std::rethrow_exception(problem);
}

} // namespace fsdprt

#endif // FSDPRT_TRAIN_PARALLELFOR_H
