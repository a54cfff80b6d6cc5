//===- ParserGuard.cpp - Report crashes of MLIR's parser --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR's parsers of text and bytecode crash on some malformed files and do not terminate on others
// (docs/explanation/rationale.md lists such files).
//
// 1. Compose the message before the file is read: a signal handler must not allocate.
// 2. Install a handler for the signals of crashes and for the signal of a CPU-time timer. The
//    handler runs on a separate stack, because the normal stack may have overflowed.
// 3. Limit the address space, because a few bytes of a malformed file can make the parser allocate
//    many GiB. If an allocation fails, the process receives SIGABRT.
// 4. The handler writes the message and ends the process with _exit(2).
//
// llvm::CrashRecoveryContext is not used, because its handler runs on the stack that has
// overflowed, and then returns to the caller. After a crash, locks and memory of the MLIR context
// can be in any state, so that the next diagnostic or a destructor could hang or crash again.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/ParserGuard.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

using namespace mlir::fsdp;

namespace {
struct CrashSignal {
  int number;
  const char *what; ///< part of the message; states what happened to the parser
  struct sigaction previous;
};
} // namespace

static CrashSignal crashSignals[] = {
    {SIGSEGV, "crashed on this file (a bad address or a stack overflow)", {}},
    {SIGBUS, "crashed on this file (a bad address)", {}},
    {SIGABRT, "crashed on this file (an abort, or too much memory)", {}},
    {SIGILL, "crashed on this file (an illegal instruction)", {}},
    {SIGTRAP, "crashed on this file (a trap)", {}},
    {SIGFPE, "crashed on this file (an arithmetic error)", {}},
    {SIGPROF, "did not end within the CPU time that a file of this size may take", {}}};
static std::string beforeWhat, afterWhat;
alignas(16) static char handlerStack[64 << 10];
static stack_t previousStack;
static rlimit previousSpace;

static void writeText(const char *text, size_t size) {
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text, size);
}

static void reportCrash(int number) {
  const char *what = "crashed on this file";
  for (const CrashSignal &signal : crashSignals)
    if (signal.number == number)
      what = signal.what;
  writeText(beforeWhat.data(), beforeWhat.size());
  writeText(what, std::strlen(what));
  writeText(afterWhat.data(), afterWhat.size());
  ::_exit(2);
}

/// Starts the CPU-time timer or, if `seconds` is 0, stops it.
static void setTimer(uint64_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

/// Returns the size of the address space of this process in bytes, or 0 if it is unknown.
static uint64_t getAddressSpace() {
  unsigned long long pages = 0;
  if (FILE *file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Lets the address space grow by 2 GiB plus 32 bytes per byte of the file. Sets no limit in a
/// build with sanitizers, because these reserve more address space than the limit.
static void limitSpace(uint64_t bytes) {
  ::getrlimit(RLIMIT_AS, &previousSpace);
#if !LLVM_ADDRESS_SANITIZER_BUILD && !LLVM_THREAD_SANITIZER_BUILD
  uint64_t used = getAddressSpace();
  if (used == 0)
    return;
  rlimit space = previousSpace;
  space.rlim_cur = std::min<rlim_t>(space.rlim_cur, used + (uint64_t(2) << 30) + 32 * bytes);
  ::setrlimit(RLIMIT_AS, &space);
#endif
}

ParserGuard::ParserGuard(llvm::StringRef tool, llvm::StringRef file, uint64_t bytes,
                         unsigned seconds) {
  std::string prefix = tool.empty() ? std::string() : tool.str() + ": ";
  beforeWhat = prefix + file.str() + ": error: MLIR's parser ";
  afterWhat =
      "; the file is damaged, or nested too deep\n" + prefix + file.str() +
      ": note: export it again; a bytecode file can be written as text with 'mlir-opt FILE'\n";
  stack_t stack{};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof handlerStack;
  ::sigaltstack(&stack, &previousStack);
  struct sigaction action{};
  action.sa_handler = reportCrash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (CrashSignal &signal : crashSignals)
    ::sigaction(signal.number, &action, &signal.previous);
  setTimer(seconds + (bytes >> 20));
  limitSpace(bytes);
}

void ParserGuard::release() {
  if (!isActive)
    return;
  isActive = false;
  setTimer(0);
  ::setrlimit(RLIMIT_AS, &previousSpace);
  for (CrashSignal &signal : crashSignals)
    ::sigaction(signal.number, &signal.previous, nullptr);
  ::sigaltstack(&previousStack, nullptr);
}
