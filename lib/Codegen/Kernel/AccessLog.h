//===- AccessLog.h - What a phase reads and writes --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tells whether arguments may be updated in place. Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
#define FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H

#include "Evaluator.h"
#include "KernelSteps.h"

namespace mlir::fsdp {

class AccessLog {
public:
  /// Stages follow each other within a row; a body is one piece of code.
  int64_t stage = 0, body = 0;

  /// Forgets the last phase; what finished phases wrote stays known.
  void begin();
  void finish(ArrayRef<Step> written);

  /// Notes the reads of arguments that are evaluated from now on.
  void watch(EvaluationState &state);
  /// The same within one row; refuses reads of the segment's values in other rows.
  void watchRow(EvaluationState &state, ArrayRef<Step> segment, SmallVector<AffineExpr> rowIndices);
  void store(const Step &step, ArrayRef<AffineExpr> indices);

  /// Every read of an argument that is written sees the old value: it is done in an
  /// earlier stage of the same row, or by the piece of code that then writes just there.
  bool isSafeInPlace() const;

private:
  struct Access {
    Value tensor;
    SmallVector<AffineExpr> indices;
    bool isStore, precise, sameRow;
    int64_t stage, body;
  };
  std::vector<Access> accesses;
  /// Stores into arguments by earlier phases.
  llvm::SmallPtrSet<void *, 4> overwritten;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
