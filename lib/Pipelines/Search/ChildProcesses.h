//===- ChildProcesses.h - Child processes that answer requests --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H
#define FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mlir::fsdp {

/// What a child process should plan.
struct ChildRequest {
  unsigned candidate;
  double fastest; ///< seconds of the fastest plan so far; 0 if there is none
};

/// The answer of a child process to a request.
struct ChildAnswer {
  unsigned child, candidate;
  std::string text;
  std::string problem; ///< empty, or how the process ended before it answered
};

/// Child processes that are copies of this process, which must have one thread. Each has a number
/// and answers one request at a time.
class ChildProcesses {
public:
  /// Returns a line of text for a request. Runs in the child process.
  using Answer = std::function<std::string(const ChildRequest &)>;

  ChildProcesses() = default;
  ChildProcesses(const ChildProcesses &) = delete;
  ~ChildProcesses();

  /// Starts the child process `number`. Returns why that fails, or an empty text.
  std::string start(unsigned number, const Answer &answer);
  /// Sends a request to a child process that is idle.
  void ask(unsigned number, const ChildRequest &request);
  /// Waits until at least one request is answered.
  std::vector<ChildAnswer> wait();
  /// Kills a child process.
  void end(unsigned number);
  /// Kills the idle child process whose last request is the oldest. Returns whether there is one.
  bool endOldest();

  bool isRunning(unsigned number) const { return children.count(number) > 0; }
  bool isBusy(unsigned number) const {
    auto found = children.find(number);
    return found != children.end() && found->second.candidate.has_value();
  }
  size_t countBusy() const;
  std::vector<unsigned> list() const;

private:
  struct Child {
    pid_t process;
    int requests, answers;             ///< ends of the pipes that this process writes and reads
    std::optional<unsigned> candidate; ///< of the request that is not answered
    unsigned asked = 0;                ///< number of requests to all children before its last one
    std::string text;
  };
  std::string finish(unsigned number);

  std::map<unsigned, Child> children;
  unsigned numRequests = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H
