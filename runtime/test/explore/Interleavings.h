//===- Interleavings.h - Runs processes in every order ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the code of several processes as threads of which one runs at a time. It is a Network
// (launch/Network.h), so that the code stops at each call that other processes can observe:
//
//     listen, accept, connect     the thread may be interrupted before the call
//     poll, sleep                 the thread waits for a descriptor or for the clock
//
// The clock stands still while a thread can run, then jumps to the next time that a thread waits
// for. Bytes go through Unix sockets of this process, which deliver at once; a late message is a
// late turn of its sender.
//
// The default order lets a thread run until it waits, then the next thread. explore() repeats a run
// with each combination of at most `deviations` other choices of the next thread and at most
// `crashes` threads that end at one of these points, where their descriptors are closed.
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

  /// A process of one run.
  struct Process {
    std::string name;
    std::function<void()> body;
    bool hasStarted = true;
    bool hasEnded = false, hasCrashed = false;

  private:
    friend class Interleavings;
    std::thread thread;
    std::vector<pollfd> wanted; ///< descriptors that it waits for
    double until = 0;           ///< time that it waits for
    std::condition_variable turn;
    bool waits = false, mustCrash = false;
  };
  /// Adds a process to the run that begins. `starts` is false if another process starts it.
  Process &add(std::string name, std::function<void()> body, bool starts = true);
  void start(Process &process) { process.hasStarted = true; }

  /// Calls begin(), which adds processes, runs them, and calls judge(), which returns what is wrong
  /// or an empty text. Repeats that for each order. Returns the first problem with its order, or an
  /// empty text.
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
  std::vector<Choice> choices; ///< of this run; those before `depth` have been made
  size_t depth = 0;
  Process *active = nullptr; ///< whose turn it is; null: the scheduler's
  std::mutex mutex;
  std::condition_variable returned; ///< the turn, to the scheduler
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EXPLORE_INTERLEAVINGS_H
