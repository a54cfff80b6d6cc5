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
  /// Numbers of the stage and of the body to which the emitted code belongs. The stages of a row
  /// run one after another. A body is the code of one loop body or of one pass over a row.
  int64_t stage = 0, body = 0;

  /// Begins a phase. Forgets the last phase's accesses, but not the overwritten arguments.
  void begin();
  /// Ends a phase: records that the phase has overwritten the destinations of the steps `written`.
  void finish(ArrayRef<Step> written);

  /// Records every later read of an argument in an evaluation with `state`.
  void watch(EvaluationState &state);
  /// Records reads as watch() does. Also records whether a read is in the row at `rowIndices`. An
  /// evaluation is refused if it reads, in another row, a value that a step of `segment` computes.
  void watchRow(EvaluationState &state, ArrayRef<Step> segment, SmallVector<AffineExpr> rowIndices);
  /// Records that `step` stores to its destinations at `indices`.
  void store(const Step &step, ArrayRef<AffineExpr> indices);

  /// Returns true if the phase may update its arguments in place. This is the case if every read of
  /// an argument that the phase writes returns a value that the argument had before the kernel. A
  /// read does so if it is in the same row as the stores and in an earlier stage, or if it reads
  /// the element that its own body overwrites later.
  bool isSafeInPlace() const;

private:
  struct Access {
    Value tensor;
    SmallVector<AffineExpr> indices;
    bool isStore, precise, sameRow;
    int64_t stage, body;
  };
  std::vector<Access> accesses;
  /// Arguments that earlier phases have overwritten.
  llvm::SmallPtrSet<void *, 4> overwritten;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_KERNEL_ACCESSLOG_H
