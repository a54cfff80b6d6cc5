//===- ParserGuard.h - Report crashes of MLIR's parser ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_PARSERGUARD_H
#define FSDP_ANALYSIS_PARSERGUARD_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// While an object of this class lives, a crash of the process (a stack overflow or an abort) or an
/// endless loop ends with an error that names `file`, and with exit code 2. Use it only while
/// upstream code reads a user's file: a crash of a pass is a defect of the compiler, and its stack
/// trace is needed. At most one object may be active at a time.
class ParserGuard {
public:
  static constexpr unsigned defaultSeconds = 20;

  /// Allows `seconds` of CPU time, and one second more for each MiB of the file's `bytes` bytes.
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
