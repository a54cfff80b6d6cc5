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
  /// A flag that is set when the owner no longer needs the result. Long work reads it regularly.
  using Cancelled = std::atomic<bool>;
  using Work = std::function<void(const Cancelled &cancelled)>;

  BackgroundTask() = default;
  /// Cancels the work and waits for its end.
  ~BackgroundTask() { cancel(); }
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;

  /// Starts a thread that calls `work`. No other work may be running. --assert-no-allocations does
  /// not count the allocations of this thread.
  void start(Work work);
  /// Returns true if no work is running.
  bool hasEnded() const { return ended.load(std::memory_order_acquire); }
  /// Returns true if the work has ended with an exception.
  bool hasFailed() const { return hasEnded() && problem; }
  /// Asks the work to end early. finish() then throws, unless the work was already done.
  void stopEarly() { cancelled = true; }
  /// Waits for the work. Throws the exception that ended it.
  void finish();
  /// Asks the work to end early, and waits. Ignores its exception.
  void cancel() noexcept;

private:
  std::thread thread;
  Cancelled cancelled{false};
  std::atomic<bool> ended{true};
  std::exception_ptr problem; ///< valid after `ended`
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_BACKGROUNDTASK_H
