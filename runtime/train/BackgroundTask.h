//===- BackgroundTask.h - Work in a thread of its own -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   owner    start(work) ------ hasEnded()? ------ hasEnded()? -- finish(): result or Error
//   thread         [------------- work ----------------]
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_BACKGROUNDTASK_H
#define FSDPRT_TRAIN_BACKGROUNDTASK_H

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace fsdprt {

class BackgroundTask {
public:
  /// A flag that is set when the owner no longer needs the result. Long work must read the flag
  /// regularly.
  using Cancelled = std::atomic<bool>;
  using Work = std::function<void(const Cancelled &cancelled)>;

  BackgroundTask() = default;
  ~BackgroundTask() { cancel(); }
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  /// Starts a thread that calls `work`. The call requires that no other work is running.
  /// --assert-no-allocations does not count allocations of the new thread.
  void start(Work work);
  /// Returns true if no work is running.
  bool hasEnded() const { return ended.load(std::memory_order_acquire); }
  bool hasFailed() const { return hasEnded() && problem; }
  /// Sets the flag of the work, so that the work can end early. After this call, finish() throws
  /// Error if the work has ended early.
  void stopEarly() { cancelled = true; }
  /// Waits until the work has ended. If an exception ended the work, throws that exception.
  void finish();
  /// Sets the flag of the work and waits until the work has ended. Ignores its exceptions.
  void cancel() noexcept;

private:
  std::thread thread;
  Cancelled cancelled{false};
  std::atomic<bool> ended{true};
  /// Exception that ended the work, if any. Valid when `ended` is true.
  std::exception_ptr problem;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_BACKGROUNDTASK_H
