//===- BoundedProcess.cpp - Runs a program within limits --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Fork. The child becomes the leader of a process group, limits the size of files, redirects
//     its output to a pipe, and executes the program. If the program cannot be executed, the child
//     sends the error through a second pipe. The start of the program closes the second pipe.
//  2. Read the pipe until the program ends, the time limit passes or the text is too long.
//  3. Kill the process group, including processes that the program started and did not end.
//
// The operating system kills the program if the thread that called runBounded() ends.
//
//===----------------------------------------------------------------------===//

#include "BoundedProcess.h"
#include "llvm/ADT/SmallVector.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;
using Clock = std::chrono::steady_clock;

namespace {
/// A pipe whose destructor closes both ends.
struct Pipe {
  int ends[2] = {-1, -1};
  int error;
  Pipe() : error(pipe2(ends, O_CLOEXEC) ? errno : 0) {}
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
  void closeEnd(int end) {
    if (ends[end] >= 0)
      close(ends[end]);
    ends[end] = -1;
  }
};
} // namespace

/// Executes the program in the child, where memory must not be allocated. Returns only if the
/// program cannot be executed.
static int becomeProgram(char *const *arguments, rlim_t fileBytes, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 &&
      (files.rlim_cur == RLIM_INFINITY || files.rlim_cur > fileBytes)) {
    files.rlim_cur = fileBytes;
    setrlimit(RLIMIT_FSIZE, &files);
  }
  int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
    return errno;
  execv(arguments[0], arguments);
  return errno;
}

/// Reads from the pipe once and appends the bytes to `text`. `text` grows to at most `most` + 1
/// bytes. If it has this size, the program wrote too much. Returns true if the pipe is still open.
static bool readSome(int pipe, size_t most, std::string &text) {
  char piece[1 << 14];
  ssize_t count = read(pipe, piece, sizeof piece);
  if (count > 0)
    text.append(piece, std::min(static_cast<size_t>(count), most + 1 - text.size()));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/// Reads until the program ends or a limit is reached. Leaves the ended program as a zombie,
/// because the system could otherwise use the number of its process group for another group.
static ProcessEnd::Kind readWithin(pid_t child, int output, const ProcessLimits &limits,
                                   std::string &text) {
  Clock::time_point last = Clock::now() + std::chrono::seconds(limits.seconds);
  constexpr int turn = 10; // poll timeout in milliseconds
  bool isOpen = true;
  while (true) {
    pollfd ready = {isOpen ? output : -1, POLLIN, 0};
    poll(&ready, 1, turn);
    siginfo_t ended = {};
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
    // The pipe now contains everything that the program wrote before it ended.
    while (isOpen && text.size() <= limits.textBytes && poll(&ready, 1, 0) > 0)
      isOpen = readSome(output, limits.textBytes, text);
    if (text.size() > limits.textBytes)
      return ProcessEnd::WroteTooMuch;
    if (ended.si_pid == child)
      return ProcessEnd::Exited;
    if (Clock::now() >= last)
      return ProcessEnd::TimedOut;
  }
}

ProcessEnd fsdp::runBounded(ArrayRef<std::string> arguments, const ProcessLimits &limits) {
  SmallVector<char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  ProcessEnd end{ProcessEnd::NotBegun, 0, {}};
  Pipe output, failure;
  if ((end.number = output.error ? output.error : failure.error))
    return end;
  pid_t child = fork();
  if (child < 0) {
    end.number = errno;
    return end;
  }
  if (child == 0) {
    int error = becomeProgram(pointers.data(), limits.fileBytes, output.ends[1]);
    [[maybe_unused]] ssize_t written = write(failure.ends[1], &error, sizeof error);
    _exit(127);
  }
  // Both the parent and the child set the group, because either of them may run first.
  setpgid(child, child);
  output.closeEnd(1);
  failure.closeEnd(1);
  int error = 0, status = 0;
  ssize_t count;
  while ((count = read(failure.ends[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count == static_cast<ssize_t>(sizeof error)) {
    waitpid(child, &status, 0);
    end.number = error;
    return end;
  }
  fcntl(output.ends[0], F_SETFL, O_NONBLOCK);
  end.kind = readWithin(child, output.ends[0], limits, end.text);
  kill(-child, SIGKILL);
  waitpid(child, &status, 0);
  if (end.kind == ProcessEnd::Exited) {
    end.kind = WIFSIGNALED(status) ? ProcessEnd::Signalled : ProcessEnd::Exited;
    end.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
  return end;
}
