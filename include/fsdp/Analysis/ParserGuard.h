//===- ParserGuard.h - Report crashes of MLIR's parser ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PARSERGUARD_H
#define FSDP_ANALYSIS_PARSERGUARD_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// If the process crashes or loops endlessly while an object of this class exists, it does not
/// print a stack trace. It prints an error that names `file`, and exits with code 2. Let the object
/// exist only while MLIR's parser reads a user's file. If a pass crashes, the compiler has a defect
/// and must print the stack trace. At most one object may be active at a time.
class ParserGuard {
public:
  static constexpr unsigned defaultSeconds = 5;

  /// `bytes` is the size of the file. Limits the CPU time to `seconds` plus one second per MiB of
  /// the file. Limits the address space that the process can allocate from now on to 2 GiB plus 32
  /// times `bytes`.
  ParserGuard(llvm::StringRef tool, llvm::StringRef file, uint64_t bytes,
              unsigned seconds = defaultSeconds);
  ~ParserGuard() { release(); }
  ParserGuard(const ParserGuard &) = delete;
  ParserGuard &operator=(const ParserGuard &) = delete;

  /// Restores the previous signal handlers.
  void release();

private:
  bool isActive = true;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_PARSERGUARD_H
