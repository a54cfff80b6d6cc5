//===- AccessLog.h - Reads and writes of a phase ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Records reads and stores of a phase, to decide whether the phase may update arguments in place.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
#define FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H

#include "Evaluator.h"
#include "KernelSteps.h"

namespace mlir::fsdp {

class AccessLog {
public:
  /// Numbers of the current stage and body of emitted code. Stages run one after another within a
  /// row. A body is the code of one loop body or of one pass over a row.
  int64_t stage = 0, body = 0;

  /// Forgets the accesses of the last phase, but remembers the arguments that the phase overwrote.
  void begin();
  /// Records that the destinations of `written` are overwritten.
  void finish(ArrayRef<Step> written);

  /// Makes `state` record all later reads of arguments.
  void watch(EvaluationState &state);
  /// Makes `state` record all later reads of arguments within one row. Refuses reads of the
  /// segment's values in other rows.
  void watchRow(EvaluationState &state, ArrayRef<Step> segment, SmallVector<AffineExpr> rowIndices);
  /// Records the stores of `step` at `indices`.
  void store(const Step &step, ArrayRef<AffineExpr> indices);

  /// Returns true if every read of an argument that the phase writes returns the old value. This is
  /// true if the read is in an earlier stage of the same row, or in the body that later stores to
  /// the same element.
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
