//===- AccessLog.h - Reads and writes of a phase ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides whether a phase may update arguments in place. This header is private to Codegen.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
#define FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H

#include "Evaluator.h"
#include "KernelSteps.h"

namespace mlir::fsdp {

class AccessLog {
public:
  /// Position of the code being emitted. Stages run one after another within a row. A body is the
  /// code of one loop body or of one pass over a row.
  int64_t stage = 0, body = 0;

  /// Forgets the accesses of the last phase, but remembers the arguments that the phase overwrote.
  void begin();
  /// Records that the destinations of `written` are overwritten.
  void finish(ArrayRef<Step> written);

  /// Records all reads of arguments from now on.
  void watch(EvaluationState &state);
  /// Records reads of arguments within one row, and refuses reads of the segment's values in
  /// other rows.
  void watchRow(EvaluationState &state, ArrayRef<Step> segment, SmallVector<AffineExpr> rowIndices);
  /// Records the stores of `step` at `indices`.
  void store(const Step &step, ArrayRef<AffineExpr> indices);

  /// Returns true if every read of an argument that the phase writes sees the old value. A read
  /// sees the old value if it is in an earlier stage of the same row, or if its body stores to the
  /// same element after the read.
  bool isSafeInPlace() const;

private:
  struct Access {
    Value tensor;
    SmallVector<AffineExpr> indices;
    bool isStore, precise, sameRow;
    int64_t stage, body;
  };
  std::vector<Access> accesses;
  /// Arguments that earlier phases stored to.
  llvm::SmallPtrSet<void *, 4> overwritten;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
