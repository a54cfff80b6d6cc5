//===- Interleavings.cpp - Runs processes in every order --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A list of choices determines a run. The list contains a number for each point at which there are
// several options, and the number 0 stands for the default option. The search is depth-first: the
// next run increments the last choice that has further options, and uses the default for all later
// choices.
//
//===----------------------------------------------------------------------===//

#include "test/explore/Interleavings.h"
#include <algorithm>
#include <cmath>

using namespace fsdprt;
using namespace fsdprt::test;

static constexpr size_t mostTurns = 5000;
static constexpr double mostSeconds = 60;

static thread_local Interleavings::Process *self = nullptr;

Interleavings::~Interleavings() = default;

Interleavings::Process &Interleavings::add(std::string name, std::function<void()> body,
                                           bool starts) {
  auto process = std::make_unique<Process>();
  process->name = std::move(name);
  process->body = std::move(body);
  process->hasStarted = starts;
  Process &added = *process;
  processes.push_back(std::move(process));
  added.thread = std::thread([this, &added] {
    self = &added;
    try {
      {
        std::unique_lock<std::mutex> lock(mutex);
        added.turn.wait(lock, [&] { return active == &added; });
      }
      if (added.mustCrash)
        throw Crash();
      added.body();
    } catch (const Crash &) {
      added.hasCrashed = true;
    }
    std::lock_guard<std::mutex> lock(mutex);
    added.hasEnded = true;
    added.body = nullptr; // closes the descriptors of the process
    active = nullptr;
    returned.notify_one();
  });
  return added;
}

/// Ends this thread's turn, and waits for its next turn.
void Interleavings::pause() {
  std::unique_lock<std::mutex> lock(mutex);
  active = nullptr;
  returned.notify_one();
  self->turn.wait(lock, [&] { return active == self; });
  self->waits = false;
  self->wanted.clear();
  if (self->mustCrash)
    throw Crash();
}

void Interleavings::sleep(double seconds) {
  self->waits = true;
  self->until = clock + seconds;
  pause();
}

int Interleavings::poll(pollfd *wanted, size_t count, double seconds) {
  self->waits = true;
  self->until = clock + seconds;
  self->wanted.assign(wanted, wanted + count);
  pause();
  return ::poll(wanted, count, 0);
}

int Interleavings::listen(const sockaddr_storage &address, socklen_t bytes, int type) {
  pause();
  return Network::listen(address, bytes, type);
}

int Interleavings::accept(int listener, int flags) {
  pause();
  return Network::accept(listener, flags);
}

int Interleavings::connect(int file, const sockaddr_storage &address, socklen_t bytes) {
  pause();
  return Network::connect(file, address, bytes);
}

bool Interleavings::isReady(Process &process) const {
  if (!process.hasStarted || process.hasEnded)
    return false;
  return !process.waits || process.until <= clock ||
         (!process.wanted.empty() && ::poll(process.wanted.data(), process.wanted.size(), 0) > 0);
}

void Interleavings::resume(Process &process) {
  std::unique_lock<std::mutex> lock(mutex);
  active = &process;
  process.turn.notify_one();
  returned.wait(lock, [&] { return active == nullptr; });
}

/// Returns the choice that the search has made for this point, or the default.
unsigned Interleavings::choose(unsigned options) {
  if (depth == choices.size())
    choices.push_back({0, options, ""});
  return choices[depth++].chosen;
}

/// Sets the clock to the earliest time at which a wait ends. Returns false if no process waits.
bool Interleavings::advance() {
  double next = INFINITY;
  for (auto &process : processes)
    if (process->hasStarted && !process->hasEnded)
      next = std::min(next, process->until);
  clock = std::max(clock, next);
  return std::isfinite(next);
}

/// Runs all processes until they have ended. Returns a description of a problem, or an empty text.
std::string Interleavings::runOnce() {
  unsigned deviationsLeft = deviations, crashesLeft = crashes;
  size_t last = 0, turns = 0;
  std::string problem;
  depth = 0;
  while (true) {
    std::vector<Process *> ready, alive;
    for (size_t i = 0; i < processes.size(); ++i) { // begins with the process of the last turn
      Process &process = *processes[(last + i) % processes.size()];
      if (isReady(process))
        ready.push_back(&process);
      if (process.hasStarted && !process.hasEnded)
        alive.push_back(&process);
    }
    if (alive.empty())
      break;
    if (ready.empty()) {
      advance();
      continue;
    }
    if (++turns > mostTurns || clock > mostSeconds) {
      problem = alive[0]->name + " does not end";
      deviationsLeft = crashesLeft = 0;
      for (Process *process : alive) {
        process->mustCrash = true;
        resume(*process);
      }
      break;
    }
    unsigned others = deviationsLeft ? static_cast<unsigned>(ready.size()) : 1;
    unsigned chosen = choose(others + (crashesLeft ? static_cast<unsigned>(alive.size()) : 0));
    Process *process = chosen < others ? ready[chosen] : alive[chosen - others];
    if (chosen >= others) {
      process->mustCrash = true;
      --crashesLeft;
    } else if (chosen) {
      --deviationsLeft;
    }
    if (chosen)
      choices[depth - 1].text = (chosen < others ? "turn of " : "crash of ") + process->name +
                                " at turn " + std::to_string(turns);
    last =
        static_cast<size_t>(std::find_if(processes.begin(), processes.end(),
                                         [&](const auto &each) { return each.get() == process; }) -
                            processes.begin());
    resume(*process);
  }
  for (auto &process : processes) {
    if (!process->hasStarted) { // ends its thread
      process->mustCrash = true;
      resume(*process);
    }
    process->thread.join();
  }
  ++runs;
  return problem;
}

std::string Interleavings::explore(const std::function<void()> &begin,
                                   const std::function<std::string()> &judge) {
  Network::replace(this);
  choices.clear();
  std::string problem;
  while (true) {
    processes.clear();
    clock = 0;
    begin();
    problem = runOnce();
    if (problem.empty())
      problem = judge();
    if (!problem.empty())
      break;
    choices.resize(depth);
    while (!choices.empty() && choices.back().chosen + 1 >= choices.back().options)
      choices.pop_back();
    if (choices.empty())
      break;
    ++choices.back().chosen;
  }
  for (const Choice &choice : choices)
    if (!problem.empty() && choice.chosen)
      problem += "; " + choice.text;
  processes.clear();
  Network::replace(nullptr);
  return problem;
}
