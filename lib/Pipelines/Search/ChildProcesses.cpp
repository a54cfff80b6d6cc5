//===- ChildProcesses.cpp - Child processes that answer requests ----------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   this process   -- number --> pipe -->   child process: a copy by fork()
//                  <-- pipe <-- a line --
//
// A child process inherits the module and its context by fork(), so that nothing is imported again.
// It reads requests until this process closes the pipe or ends. If no child answers for
// `stallSeconds`, all busy ones are killed.
//
//===----------------------------------------------------------------------===//

#include "ChildProcesses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir::fsdp;

/// Longest time between two answers. One answer takes seconds to a few minutes.
static constexpr int stallSeconds = 3600;

/// Writes all bytes. Returns false if the other end of the pipe is closed.
static bool writeAll(int pipe, const void *data, size_t size) {
  for (const char *next = static_cast<const char *>(data); size > 0;) {
    ssize_t bytes = write(pipe, next, size);
    if (bytes < 0 && errno == EINTR)
      continue;
    if (bytes <= 0)
      return false;
    next += bytes;
    size -= static_cast<size_t>(bytes);
  }
  return true;
}

/// Reads the next request. Returns nothing if there are no more.
static std::optional<ChildRequest> readRequest(int pipe) {
  ChildRequest request{};
  while (true) {
    // A request is shorter than the bytes that a pipe keeps together.
    ssize_t bytes = read(pipe, &request, sizeof(request));
    if (bytes == sizeof(request))
      return request;
    if (bytes >= 0 || errno != EINTR)
      return std::nullopt;
  }
}

ChildProcesses::~ChildProcesses() {
  for (unsigned number : list())
    end(number);
}

std::string ChildProcesses::start(unsigned number, const Answer &answer) {
  int requests[2], answers[2];
  if (pipe2(requests, O_CLOEXEC) != 0)
    return std::string("cannot create a pipe: ") + std::strerror(errno);
  if (pipe2(answers, O_CLOEXEC) != 0) {
    close(requests[0]), close(requests[1]);
    return std::string("cannot create a pipe: ") + std::strerror(errno);
  }
  // Text that is still in a buffer would be written by both processes.
  llvm::outs().flush();
  llvm::errs().flush();
  pid_t process = fork();
  if (process == 0) {
    // Another child would not notice the end of the parent process while this one can write to it.
    for (auto &[other, child] : children)
      close(child.requests), close(child.answers);
    close(requests[1]), close(answers[0]);
    // The default action of SIGPIPE ends this process if the parent process has ended.
    std::signal(SIGPIPE, SIG_DFL);
    while (std::optional<ChildRequest> request = readRequest(requests[0])) {
      std::string text = answer(*request) + "\n";
      if (!writeAll(answers[1], text.data(), text.size()))
        break;
    }
    _exit(0);
  }
  std::string problem = process < 0 ? std::strerror(errno) : "";
  close(requests[0]), close(answers[1]);
  if (process < 0) {
    close(requests[1]), close(answers[0]);
    return "cannot start a process: " + problem;
  }
  children[number] = {process, requests[1], answers[0], std::nullopt, numRequests, ""};
  return "";
}

void ChildProcesses::ask(unsigned number, const ChildRequest &request) {
  Child &child = children.at(number);
  child.candidate = request.candidate;
  child.asked = ++numRequests;
  // If the process has ended, wait() reports the end.
  auto *handler = std::signal(SIGPIPE, SIG_IGN);
  (void)writeAll(child.requests, &request, sizeof(request));
  std::signal(SIGPIPE, handler);
}

size_t ChildProcesses::countBusy() const {
  return llvm::count_if(children,
                        [](const auto &entry) { return entry.second.candidate.has_value(); });
}

std::vector<unsigned> ChildProcesses::list() const {
  auto numbers = llvm::make_first_range(children);
  return {numbers.begin(), numbers.end()};
}

/// Waits for the end of a child process that has closed its pipe or was killed, and forgets it.
/// Returns how it ended early, or an empty text.
std::string ChildProcesses::finish(unsigned number) {
  Child child = std::move(children.at(number));
  children.erase(number);
  close(child.requests), close(child.answers);
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

void ChildProcesses::end(unsigned number) {
  kill(children.at(number).process, SIGKILL);
  (void)finish(number);
}

bool ChildProcesses::endOldest() {
  const std::pair<const unsigned, Child> *oldest = nullptr;
  for (const auto &entry : children)
    if (!entry.second.candidate && (!oldest || entry.second.asked < oldest->second.asked))
      oldest = &entry;
  if (oldest)
    end(oldest->first);
  return oldest;
}

std::vector<ChildAnswer> ChildProcesses::wait() {
  std::vector<ChildAnswer> answers;
  while (answers.empty()) {
    std::vector<pollfd> pipes;
    std::vector<unsigned> numbers = list();
    for (unsigned number : numbers)
      pipes.push_back({children.at(number).answers, POLLIN, 0});
    int ready = poll(pipes.data(), pipes.size(), stallSeconds * 1000);
    if (ready < 0)
      continue; // a signal
    for (auto [number, its] : llvm::zip_equal(numbers, pipes)) {
      Child &child = children.at(number);
      if (ready == 0 && child.candidate)
        kill(child.process, SIGKILL);
      if (its.revents == 0)
        continue;
      char buffer[1 << 16];
      ssize_t bytes = read(child.answers, buffer, sizeof(buffer));
      if (bytes < 0 && errno == EINTR)
        continue;
      std::optional<unsigned> candidate = child.candidate;
      if (bytes > 0) {
        child.text.append(buffer, static_cast<size_t>(bytes));
        if (child.text.back() != '\n')
          continue;
        child.text.pop_back();
        child.candidate.reset();
        answers.push_back({number, *candidate, std::move(child.text), ""});
        child.text.clear();
        continue;
      }
      std::string problem = finish(number);
      if (problem.empty())
        problem = "the process that plans it has returned no plan";
      if (candidate)
        answers.push_back({number, *candidate, "", problem});
    }
  }
  return answers;
}
