//===- ChildProcesses.cpp - Tasks in child processes ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A task inherits the module and its context by fork(), so that nothing is imported again. It
// writes its results to a pipe, which this process reads until all children have closed theirs. If
// no child writes anything for `stallSeconds`, all of them are killed.
//
//===----------------------------------------------------------------------===//

#include "ChildProcesses.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir::fsdp;

/// Longest time between two results. One result takes seconds to a few minutes.
static constexpr int stallSeconds = 3600;

namespace {
struct Child {
  size_t task;
  pid_t process;
  int pipe; ///< end from which this process reads
};
} // namespace

/// Starts a child process for a task. Returns nothing and sets `problem` if that fails.
static std::optional<Child> start(size_t task, const std::function<void(llvm::raw_ostream &)> &run,
                                  std::string &problem) {
  int ends[2];
  if (pipe(ends) != 0) {
    problem = std::string("cannot create a pipe: ") + std::strerror(errno);
    return std::nullopt;
  }
  // Text that is still in a buffer would be written by both processes.
  llvm::outs().flush();
  llvm::errs().flush();
  pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    // The default action of SIGPIPE ends this process if the parent process has ended.
    std::signal(SIGPIPE, SIG_DFL);
    {
      llvm::raw_fd_ostream os(ends[1], /*shouldClose=*/true);
      run(os);
    }
    _exit(0);
  }
  close(ends[1]);
  if (process < 0) {
    problem = std::string("cannot start a process: ") + std::strerror(errno);
    close(ends[0]);
    return std::nullopt;
  }
  return Child{task, process, ends[0]};
}

/// Waits for the end of a child process that has closed its pipe or was killed. Returns how it
/// ended early, or an empty text.
static std::string finish(const Child &child) {
  close(child.pipe);
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0)
    if (errno != EINTR)
      return std::string("cannot wait for a process: ") + std::strerror(errno);
  if (WIFSIGNALED(status))
    return "the process that plans it was ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0
             ? ""
             : "the process that plans it ended with code " + std::to_string(WEXITSTATUS(status));
}

/// Reads what is in the pipe of a child process. Returns false at its end.
static bool readSome(const Child &child, std::string &text) {
  char buffer[1 << 16];
  ssize_t bytes = read(child.pipe, buffer, sizeof(buffer));
  if (bytes > 0)
    text.append(buffer, static_cast<size_t>(bytes));
  return bytes > 0 || (bytes < 0 && errno == EINTR);
}

std::vector<ChildOutput>
mlir::fsdp::runInChildren(const std::vector<std::function<void(llvm::raw_ostream &)>> &tasks) {
  std::vector<ChildOutput> outputs(tasks.size());
  std::vector<Child> running;
  size_t most = std::max(1U, std::thread::hardware_concurrency()), next = 0;
  while (next < tasks.size() || !running.empty()) {
    for (; next < tasks.size() && running.size() < most; ++next)
      if (std::optional<Child> child = start(next, tasks[next], outputs[next].problem))
        running.push_back(*child);
    std::vector<pollfd> pipes;
    for (const Child &child : running)
      pipes.push_back({child.pipe, POLLIN, 0});
    int ready = poll(pipes.data(), pipes.size(), stallSeconds * 1000);
    if (ready < 0)
      continue; // a signal
    if (ready == 0)
      for (const Child &child : running)
        kill(child.process, SIGKILL);
    std::vector<Child> left;
    for (size_t index = 0; index < running.size(); ++index) {
      const Child &child = running[index];
      ChildOutput &output = outputs[child.task];
      if (pipes[index].revents == 0 || readSome(child, output.text))
        left.push_back(child);
      else
        output.problem = finish(child);
    }
    running = std::move(left);
  }
  return outputs;
}
