//===- GpuGemmEpilogue.h - From sums to results on a GPU --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

/// Neighbours in a row of the result that one thread finishes.
struct Strip {
  Value outer, row, col; ///< the first
  Value exists;          ///< or null when it does
};

/// Sums of a part of the result, as f32 in shared memory, row by row.
struct StagedSums {
  Value begin;
  int64_t pitch; ///< bytes between rows
  int64_t rows, cols;
  Value outer, firstRow, firstCol; ///< of the result, that the part begins with
};

/// Whether there is nothing that products are added to.
bool startsFromZero(const Problem &problem);

class GpuEpilogue {
public:
  GpuEpilogue(GpuBuilder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel);

  using SumsOf = function_ref<SmallVector<Value>(unsigned)>;
  /// Goes through the strips of a part, by `threads` threads of which this is number `thread`:
  /// body(some strips, sums of the i-th).
  void forEachStrip(const StagedSums &staged, Value thread, int64_t threads,
                    function_ref<void(ArrayRef<Strip>, SumsOf)> body);
  /// Finishes strips: adds what the sums begin from, runs the ops after the contraction, stores.
  /// `sums` gives those of strip i; loads of all strips come first.
  void finish(ArrayRef<Strip> strips, SumsOf sums);
  /// What becomes of the sums of a strip, of the problem's only result.
  SmallVector<Value> compute(const Strip &strip, ArrayRef<Value> sums);
  /// Finishes strips or, where k is in parts, stores their sums as part `split` in scratch.
  void finishOrKeep(ArrayRef<Strip> strips, Value split, SumsOf sums);
  /// The sums of all parts, in order.
  SmallVector<Value> collect(const Strip &strip);

private:
  using Row = SmallVector<Value>;
  struct Loaded {
    Position position;
    Row init;
    SmallVector<Row> loads;
  };
  Value existsAt(Value row, Value col);
  Position positionOf(const Strip &strip);
  Pointer placeOf(const Operand &operand, const Position &position);
  Row load(const Operand &operand, const Position &position);
  Row loadExisting(const Operand &operand, const Strip &strip, const Position &position);
  Row applyMaps(const Operand &operand, Row row);
  void store(const StoreStep &step, const Position &position, const Row &values);
  Loaded loadAll(const Strip &strip);
  SmallVector<Row> results(const Loaded &loaded, Row sums);
  void finish(const Strip &strip, const Loaded &loaded, Row sums);
  void keep(const Strip &strip, Value split, ArrayRef<Value> sums);
  Pointer partOf(const Strip &strip, Value split);
  Value indexOf(ArrayRef<int64_t> strides, const Position &position, int64_t lane);
  int64_t colStride(ArrayRef<int64_t> strides) const { return strides[plan.rhs.digits.back()]; }

  GpuBuilder &b;
  const Problem &problem;
  const GpuPlan &plan;
  SmallVector<Pointer> bindings;
};

/// Where k is in parts: the launch that adds them, one strip per thread.
void addPartSums(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan, ModuleOp entries,
                 GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H
