//===- Printer.cpp - Output of fsdp-run -------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     [##########----------------]  120/300  loss 2.3145  norm 0.91  lr 3.0e-04  5,421 tokens/s ..
//
//===----------------------------------------------------------------------===//

#include "Printer.h"
#include "core/Error.h"
#include "core/FutexEvent.h"
#include "core/NumberText.h"
#include "fsdpcommon/ShortText.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace fsdprt;

static constexpr int barWidth = 28;
static constexpr double secondsBetweenLines = 10;

Printer::Printer(bool silent, bool plain)
    : terminal(!silent && !plain && isatty(STDOUT_FILENO) != 0), silent(silent) {}

void Printer::raw(const char *text, size_t size) {
  while (size > 0 && !unread && !silent) {
    ssize_t done = ::write(STDOUT_FILENO, text, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && errno == EPIPE) {
      unread = true;
      return;
    }
    if (done < 0)
      failed("cannot write to standard output: %s", strerror(errno));
    text += done;
    size -= done;
  }
}

void Printer::write(const char *text, size_t size) {
  if (drawn)
    raw("\r\033[K", 4);
  drawn = false;
  raw(text, size);
}

void Printer::writeWarning(const char *text) {
  std::fprintf(stderr, "fsdp-run: warning: %s\n", fsdpcommon::printableMessage(text).c_str());
}

/// Writes a text such as "loss 2.3145 norm 0.91 lr 3.0e-04 " to `text`. If `onlyTimes` is set,
/// writes an empty text.
static const char *numbersOf(const StepReport &report, char (&text)[128]) {
  text[0] = '\0';
  if (!report.onlyTimes)
    std::snprintf(text, sizeof text, "loss %.4f  norm %.3g  lr %.2e  ",
                  printableNumber(report.loss), printableNumber(report.gradNorm), report.lr);
  return text;
}

void Printer::bar(const StepReport &report) {
  double now = monotonicSeconds();
  if (now - lastDrawn < 0.1 && report.step != report.steps)
    return;
  lastDrawn = now;
  char done[barWidth + 1], speed[32], numbers[128], buffer[256];
  int filled = static_cast<int>(report.step * barWidth / report.steps);
  for (int i = 0; i < barWidth; ++i)
    done[i] = i < filled ? '#' : '-';
  done[barWidth] = '\0';
  uint64_t left = static_cast<uint64_t>(report.secondsLeft + 0.5);
  int size = std::snprintf(buffer, sizeof buffer, "[%s] %llu/%llu  %s%s tokens/s  %llu:%02llu left",
                           done, (unsigned long long)report.step, (unsigned long long)report.steps,
                           numbersOf(report, numbers),
                           grouped(static_cast<uint64_t>(report.tokensPerSecond + 0.5), speed),
                           (unsigned long long)(left / 60), (unsigned long long)(left % 60));
  winsize window = {};
  // The bar must fit into one line of the terminal, because a wrapped line cannot be redrawn.
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    size = std::min(size, window.ws_col - 1);
  raw("\r\033[K", 4);
  raw(buffer, std::min<size_t>(size, sizeof buffer - 1));
  drawn = true;
}

void Printer::step(const StepReport &report) {
  if (terminal)
    return bar(report);
  uint64_t every = std::max<uint64_t>(1, report.steps / 20);
  double now = monotonicSeconds();
  bool due = report.step == 1 || report.step == report.steps || report.step % every == 0;
  if (!due && now - lastLine < secondsBetweenLines)
    return;
  lastLine = now;
  char speed[32], numbers[128];
  line("step %llu/%llu  %s%s tokens/s", (unsigned long long)report.step,
       (unsigned long long)report.steps, numbersOf(report, numbers),
       grouped(static_cast<uint64_t>(report.tokensPerSecond + 0.5), speed));
}

void Printer::endSteps() {
  if (drawn)
    raw("\n", 1);
  drawn = false;
}
