//===- ChildProcesses.h - Tasks in child processes --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H
#define FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H

#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// The text that a task wrote. `problem` is empty, or says how the child process ended early.
struct ChildOutput {
  std::string text, problem;
};

/// Runs each task in a child process that is a copy of this process. At most as many run at a time
/// as the machine has processors. The process must have one thread. Returns the outputs in the
/// order of the tasks.
std::vector<ChildOutput>
runInChildren(const std::vector<std::function<void(llvm::raw_ostream &)>> &tasks);

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_CHILDPROCESSES_H
