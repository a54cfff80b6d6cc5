//===- ParserGuard.cpp - Report crashes of MLIR's parser --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Upstream's parsers of text and bytecode crash on some malformed files
// (docs/explanation/rationale.md lists them).
//
// 1. Compose the message before the file is read: a signal handler must not allocate.
// 2. Install a handler for the signals of a crash. It runs on its own stack, because the normal
//    stack may have overflowed.
// 3. The handler writes the message and ends the process with _exit(2).
//
// llvm::CrashRecoveryContext, which returns to its caller, is not used. Its handler runs on the
// stack that has overflowed. After a crash, locks and memory of the MLIR context can be in any
// state, so that the next diagnostic or a destructor could hang or crash again.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/ParserGuard.h"
#include <csignal>
#include <cstring>
#include <iterator>
#include <string>
#include <unistd.h>

using namespace mlir::fsdp;

namespace {
struct CrashSignal {
  int number;
  const char *name;
  struct sigaction previous;
};
} // namespace

static CrashSignal crashSignals[] = {{SIGSEGV, "a bad address or a stack overflow", {}},
                                     {SIGBUS, "a bad address", {}},
                                     {SIGABRT, "an abort", {}},
                                     {SIGILL, "an illegal instruction", {}},
                                     {SIGTRAP, "a trap", {}},
                                     {SIGFPE, "an arithmetic error", {}}};
static std::string beforeName, afterName;
alignas(16) static char handlerStack[64 << 10];
static stack_t previousStack;

static void writeText(const char *text, size_t size) {
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text, size);
}

static void reportCrash(int number) {
  const char *name = "a signal";
  for (const CrashSignal &signal : crashSignals)
    if (signal.number == number)
      name = signal.name;
  writeText(beforeName.data(), beforeName.size());
  writeText(name, std::strlen(name));
  writeText(afterName.data(), afterName.size());
  ::_exit(2);
}

ParserGuard::ParserGuard(llvm::StringRef tool, llvm::StringRef file) {
  std::string prefix = tool.empty() ? std::string() : tool.str() + ": ";
  beforeName = prefix + file.str() + ": error: MLIR's parser crashed on this file (";
  afterName =
      "); the file is damaged, or nested too deep\n" + prefix + file.str() +
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
}

void ParserGuard::release() {
  if (!isActive)
    return;
  isActive = false;
  for (CrashSignal &signal : crashSignals)
    ::sigaction(signal.number, &signal.previous, nullptr);
  ::sigaltstack(&previousStack, nullptr);
}
