//===- Interrupts.cpp - Ending a run early -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The signal handlers only set a flag and call async-signal-safe functions such as write(2).
//
//===----------------------------------------------------------------------===//

#include "launch/Interrupts.h"
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <unistd.h>

static volatile std::sig_atomic_t asked = 0;

static void ask(int signal) {
  static const char text[] = "\nfsdp-run: ending after this step; repeat to end at once\n";
  int saved = errno;
  asked = signal;
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  errno = saved;
}

static void endEarly(int signal) {
  static const char text[] = "\nfsdp-run: ended before the first step\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
  raise(signal); // SA_RESETHAND has restored the default action
}

static void note(int signal) { asked = signal; }

void fsdprt::catchInterrupts(Interrupts how) {
  struct sigaction quiet = {};
  quiet.sa_handler = note;
  quiet.sa_flags = static_cast<int>(SA_RESTART);
  if (how == Interrupts::launched) {
    sigaction(SIGTERM, &quiet, nullptr);
    return;
  }
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {}, old = {};
    action.sa_handler = how == Interrupts::early ? endEarly : how == Interrupts::said ? ask : note;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

int fsdprt::interruptSignal() { return asked; }
