//===- GpuBuilder.h - Short names for building GPU code ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scalars of one thread. Indices within a tile are of 32 bits, places in global memory are
// counted in 64. Shared memory is that of the launch, `shared`, in bytes from its begin.
// Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H
#define FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// An intrinsic on values of one type, which is that of its result.
Value callIntrinsic(OpBuilder &b, Location loc, StringRef name, ValueRange arguments);

class GpuBuilder : public CodeBuilder {
public:
  GpuBuilder(Location loc, MLIRContext *context, int64_t threads)
      : CodeBuilder(loc, context), threads(threads) {}

  const int64_t threads; ///< of a block

  //===--- Entries ---------------------------------------------------------===// / Makes an entry
  // with the bindings of `kernel`, one more where `scratch`, and `maps` tensor maps, and goes into
  // it. / `minBlocks` of them are to fit on a multiprocessor; `cluster` blocks run together.
  void enter(ModuleOp entries, func::FuncOp kernel, StringRef symbol, int64_t minBlocks,
             bool scratch, int64_t maps = 0, int64_t cluster = 1);
  /// Ends it.
  void leave();
  Pointer binding(Value tensor) const { return bindings.lookup(tensor); }
  /// Where the kernel returns a value; no base when it does not.
  Pointer destination(func::FuncOp kernel, Value result) const;
  Value tensorMap(int64_t number) const { return tensorMaps[number]; }
  Pointer scratch(Type type) { return {scratchBase, type, constant(0)}; }

  //===--- Scalars ---------------------------------------------------------===//
  Value i32(int64_t value);
  Value number(double value); ///< f32
  Value to64(Value value);
  Value to32(Value value);
  Value thread();
  Value block();
  Value lane() { return rem(thread(), 32); }
  Value warp() { return div(thread(), 32); }
  /// Row l/4 of a lane, and its column 2 (l%4): where register 0 of what mma and wgmma leave
  /// stands.
  Value rowOfLane() { return div(lane(), 4); }
  Value colOfLane() { return mul(rem(lane(), 4), 2); }
  /// 2^x; 0 below 2^-126.
  Value exp2(Value x) { return callIntrinsic(*this, loc, "llvm.nvvm.ex2.approx.ftz", x); }
  Value isLower(Value a, int64_t b) { return isLess(a, constantLike(a, b)); }
  Value either(Value a, Value b) { return createOrFold<arith::OrIOp>(loc, a, b); }

  //===--- Threads ---------------------------------------------------------===//
  void barrier();
  /// Of the lanes of a warp.
  void syncWarp();
  /// What the lane with these bits of its number turned over has.
  Value exchange(Value value, int64_t bits);
  /// Over the four lanes that hold a row.
  Value overQuad(Value value, function_ref<Value(Value, Value)> combine);
  Value overWarp(Value value, function_ref<Value(Value, Value)> combine);

  //===--- Memory ----------------------------------------------------------===//
  /// A place in shared memory.
  Value sharedAt(int64_t bytes);
  Value shiftBytes(Value pointer, Value bytes);
  Value shiftBytes(Value pointer, int64_t bytes);
  /// Two numbers as one word of two 16-bit floats, `low` first in memory.
  Value pack(Value low, Value high, Type element);
  /// Two f32 numbers as neighbours of the place's type, aligned to both.
  void storePair(Value first, Value second, const Pointer &place);

private:
  DenseMap<Value, Pointer> bindings;
  SmallVector<Value> tensorMaps;
  Value scratchBase, sharedBase;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H
