//===- BackgroundTask.cpp - Work in a thread of its own ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The thread of a task blocks all signals. A signal that is sent to the process is therefore
// handled by the main thread, which ends the run in an orderly way.
//
//===----------------------------------------------------------------------===//

#include "train/BackgroundTask.h"
#include "core/AllocationCount.h"
#include "core/Error.h"
#include <csignal>
#include <pthread.h>
#include <system_error>
#include <utility>

using namespace fsdprt;

void BackgroundTask::start(Work work) {
  cancelled = false;
  problem = nullptr;
  ended = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread = std::thread([this, work = std::move(work)] {
      UncountedAllocations uncounted;
      try {
        work(cancelled);
      } catch (...) {
        problem = std::current_exception();
      }
      ended.store(true, std::memory_order_release);
    });
  } catch (const std::system_error &error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ended = true;
    failed("cannot start a thread for the save: %s", error.code().message().c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void BackgroundTask::finish() {
  if (thread.joinable())
    thread.join();
  if (std::exception_ptr raised = std::exchange(problem, nullptr))
    std::rethrow_exception(raised);
}

void BackgroundTask::cancel() noexcept {
  cancelled = true;
  if (thread.joinable())
    thread.join();
  problem = nullptr;
}
