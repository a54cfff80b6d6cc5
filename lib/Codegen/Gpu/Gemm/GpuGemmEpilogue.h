//===- GpuGemmEpilogue.h - From accumulators to results ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H

#include "Codegen/Gpu/Ptx/GpuBuilder.h"
#include "Codegen/Gpu/Ptx/OpWork.h"
#include "GpuGemm.h"

namespace mlir::fsdp::gemm {

/// A strip: contiguous elements of a row of the result, which one thread computes.
struct Strip {
  Value outer, row, col; ///< position of the first element
  Value exists;          ///< true if the strip exists; null if all strips exist
};

/// The accumulators of a block or warpgroup, written row by row to shared memory as f32.
struct StagedSums {
  Value begin;
  int64_t pitch; ///< distance between rows, in bytes
  int64_t rows, cols;
  Value outer, firstRow, firstCol; ///< position of the first accumulator in the result
};

/// Returns the instructions of the epilogue for an element of the result.
OpWork workOfMaps(const Problem &problem);
/// Returns true if the accumulation starts from zero.
bool startsFromZero(const Problem &problem);

class GpuEpilogue {
public:
  GpuEpilogue(GpuBuilder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel);

  using SumsOf = function_ref<SmallVector<Value>(unsigned)>;
  /// Emits a loop over the strips of `staged`. The strips are divided among `threads` threads, and
  /// `thread` is the number of this thread. The loop runs body(strips, sums), where sums(i) returns
  /// the sums of strip i.
  void forEachStrip(const StagedSums &staged, Value thread, int64_t threads,
                    function_ref<void(ArrayRef<Strip>, SumsOf)> body);
  /// Adds the initial value to strips, applies the elementwise ops and stores the results. sums(i)
  /// returns the sums of strip i. The inputs of all strips are loaded before the first strip is
  /// computed.
  void finish(ArrayRef<Strip> strips, SumsOf sums);
  using Row = SmallVector<Value>;
  /// The inputs of a strip, except its sums. `init` is empty if sums start from zero.
  struct Loaded {
    Position position;
    Row init;
    SmallVector<Row> loads;
  };
  /// Loads the inputs of a strip, except those that `isElsewhere` returns true for.
  Loaded loadAll(const Strip &strip, function_ref<bool(const Operand &)> isElsewhere = nullptr);
  /// Sets an input that loadAll() did not load.
  void setInput(Loaded &loaded, const Operand &operand, Row values);
  /// Computes the elements of each result from the inputs and the sums of a strip.
  SmallVector<Row> results(const Loaded &loaded, Row sums);
  /// If k is split into parts, stores the sums of the strips in scratch, at the place of the part
  /// with the index `split`. Otherwise calls finish().
  void finishOrKeep(ArrayRef<Strip> strips, Value split, SumsOf sums);
  /// Adds the sums of a strip over all parts of k, in the order of the parts. Returns the results.
  SmallVector<Value> collect(const Strip &strip);

private:
  Value existsAt(Value row, Value col);
  Position positionOf(const Strip &strip);
  Pointer placeOf(const Operand &operand, const Position &position);
  Row load(const Operand &operand, const Position &position);
  Row loadExisting(const Operand &operand, const Strip &strip, const Position &position);
  Row applyMaps(const Operand &operand, Row row);
  void store(const StoreStep &step, const Position &position, const Row &values);
  void finish(const Strip &strip, const Loaded &loaded, Row sums);
  void keep(const Strip &strip, Value split, ArrayRef<Value> sums);
  Pointer partOf(const Strip &strip, Value split);
  Value partsOf(const Strip &strip);
  Value indexOf(ArrayRef<int64_t> strides, const Position &position, int64_t lane);
  int64_t colStride(ArrayRef<int64_t> strides) const { return strides[plan.rhs.digits.back()]; }

  GpuBuilder &b;
  const Problem &problem;
  const GpuPlan &plan;
  SmallVector<Pointer> bindings;
};

/// If k is split, adds the launch that sums the parts. Each of its threads computes one strip.
void addPartSums(func::FuncOp kernel, const Problem &problem, const GpuPlan &plan, ModuleOp entries,
                 GpuKernel &info);

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_GPUGEMMEPILOGUE_H
