//===- Interleavings.h - Runs processes in every order ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the code of several processes as threads, one at a time. Interleavings implements Network
// (launch/Network.h), through which the code makes the calls that other processes can observe. A
// thread stops at each of these calls:
//
//     listen, accept, connect     the thread may be interrupted before the call
//     poll, sleep                 the thread waits for a descriptor or for the clock
//
// The clock is constant while a thread can run. When no thread can run, the clock is set to the
// earliest time at which a wait ends. Bytes are sent through Unix sockets of this process without
// delay. To simulate a delayed message, the turn in which the sender sends the message is delayed.
//
// In the default order, a thread runs until it waits, and then the next thread runs. The run is
// repeated for each combination of at most `deviations` deviations and at most `crashes` crashes. A
// deviation is a point at which another thread than the default thread is chosen. A crash ends a
// thread at one of the calls listed above, and closes the descriptors of the thread.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_EXPLORE_INTERLEAVINGS_H
#define FSDPRT_TEST_EXPLORE_INTERLEAVINGS_H

#include "launch/Network.h"
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fsdprt::test {

class Interleavings final : public Network {
public:
  Interleavings(unsigned deviations, unsigned crashes) : deviations(deviations), crashes(crashes) {}
  ~Interleavings() override;

  struct Process {
    std::string name;
    std::function<void()> body;
    bool hasStarted = true;
    bool hasEnded = false, hasCrashed = false;

  private:
    friend class Interleavings;
    std::thread thread;
    std::vector<pollfd> wanted; ///< descriptors for which the thread waits
    double until = 0;           ///< time until which the thread waits
    std::condition_variable turn;
    bool waits = false, mustCrash = false;
  };
  /// Adds a process to the run that is about to begin. If `starts` is false, the process does not
  /// run before another process calls start() for it.
  Process &add(std::string name, std::function<void()> body, bool starts = true);
  void start(Process &process) { process.hasStarted = true; }

  /// For each order, calls begin(), which adds processes, and runs these processes. Then calls
  /// judge(), which returns a description of a problem, or an empty text. Returns the first problem
  /// and the order in which it occurred. Returns an empty text if there is no problem.
  std::string explore(const std::function<void()> &begin,
                      const std::function<std::string()> &judge);
  size_t numRuns() const { return runs; }

  double now() override { return clock; }
  void sleep(double seconds) override;
  int poll(pollfd *wanted, size_t count, double seconds) override;
  int listen(const sockaddr_storage &address, socklen_t bytes, int type) override;
  int accept(int listener, int flags) override;
  int connect(int file, const sockaddr_storage &address, socklen_t bytes) override;

private:
  struct Crash {};
  struct Choice {
    unsigned chosen, options;
    std::string text;
  };
  std::string runOnce();
  bool isReady(Process &process) const;
  unsigned choose(unsigned options);
  void resume(Process &process);
  void pause();
  bool advance();

  unsigned deviations, crashes;
  size_t runs = 0;
  double clock = 0;
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<Choice> choices; ///< choices of this run, `depth` of which have been made
  size_t depth = 0;
  Process *active = nullptr; ///< thread that runs; null if the scheduler runs
  std::mutex mutex;
  std::condition_variable returned; ///< signals the end of a turn
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EXPLORE_INTERLEAVINGS_H
