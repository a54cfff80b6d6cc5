//===- GpuBuilder.h - Builder for GPU code ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the class that emits the code of one thread. Indices within a tile have 32 bits, and
// offsets in global memory have 64 bits. Shared memory means the dynamic shared memory of the
// launch, which is addressed in bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H
#define FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H

#include "Codegen/Kernel/CodeBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Calls an intrinsic whose result has the type of its first argument.
Value callIntrinsic(OpBuilder &b, Location loc, StringRef name, ValueRange arguments);

class GpuBuilder : public CodeBuilder {
public:
  GpuBuilder(Location loc, MLIRContext *context, int64_t threads)
      : CodeBuilder(loc, context), threads(threads) {}

  const int64_t threads; ///< number of threads per block

  //===--- Entries ---------------------------------------------------------===//

  /// Creates an entry and sets the insertion point in it. The entry's arguments are the bindings of
  /// `kernel`, the scratch if `scratch` is true, and `maps` tensor maps. At least `minBlocks`
  /// blocks must fit a multiprocessor together. `cluster` is the number of blocks per cluster.
  void enter(ModuleOp entries, func::FuncOp kernel, StringRef symbol, int64_t minBlocks,
             bool scratch, int64_t maps = 0, int64_t cluster = 1);
  /// Ends the entry.
  void leave();
  Pointer binding(Value tensor) const { return bindings.lookup(tensor); }
  /// Returns the pointer to the argument in which the kernel returns `result`. The pointer's base
  /// is null if the kernel does not return `result`.
  Pointer destination(func::FuncOp kernel, Value result) const;
  Value tensorMap(int64_t number) const { return tensorMaps[number]; }
  Pointer scratch(Type type) { return {scratchBase, type, constant(0)}; }

  //===--- Scalars ---------------------------------------------------------===//
  Value i32(int64_t value);
  Value number(double value); ///< an f32 constant
  Value to64(Value value);
  Value to32(Value value);
  Value thread();
  Value block();
  Value lane() { return rem(thread(), 32); }
  Value warp() { return div(thread(), 32); }
  /// Returns a copy of an i32 or i64 that optimisations cannot relate to `value`.
  Value opaque(Value value);
  /// Return l/4 and 2 (l%4) for lane l. In an accumulator of mma or wgmma, these are the row and
  /// the column of the element in register 0 of the lane.
  Value rowOfLane() { return div(lane(), 4); }
  Value colOfLane() { return mul(rem(lane(), 4), 2); }
  /// Emits 2^x. Results below 2^-126 become 0.
  Value exp2(Value x) { return callIntrinsic(*this, loc, "llvm.nvvm.ex2.approx.ftz", x); }
  /// Rounds an f32 to TF32, ties away from zero (cvt.rna), as the bits of an i32.
  Value roundToTF32(Value number);
  /// Returns the parts high = tf32(x) and low = tf32(x - high) of an f32, as roundToTF32() does.
  std::pair<Value, Value> splitToTF32(Value number);
  Value isLower(Value a, int64_t b) { return isLess(a, constantLike(a, b)); }
  Value either(Value a, Value b) { return createOrFold<arith::OrIOp>(loc, a, b); }

  //===--- Threads ---------------------------------------------------------===//
  void barrier();
  /// Synchronises the lanes of a warp.
  void syncWarp();
  /// Returns `value` of the lane whose number is this lane's number xor `bits` (shfl.bfly).
  Value exchange(Value value, int64_t bits);
  /// Combine a value over several lanes, each of which gets the result. overQuad() combines the
  /// four lanes that hold a row, and overWarp() combines all lanes of the warp.
  Value overQuad(Value value, function_ref<Value(Value, Value)> combine);
  Value overWarp(Value value, function_ref<Value(Value, Value)> combine);

  /// Ends the basic block, so that ptxas moves no instructions across this place. The emitted
  /// branch is never taken, because no multiprocessor has the number 2^32 - 1. `productsRun` must
  /// be true if wgmma may be in flight at this place. The values `sums`, of type f32, are computed
  /// before the branch. They are replaced by results of the branch with the same values, so that
  /// no operation that computes them can move to code after this place.
  void endBlock(bool productsRun = false, MutableArrayRef<Value> sums = {});

  //===--- Memory ----------------------------------------------------------===//
  /// Returns the address `bytes` bytes after the start of shared memory.
  Value sharedAt(int64_t bytes);
  Value shiftBytes(Value pointer, Value bytes);
  Value shiftBytes(Value pointer, int64_t bytes);
  /// Loads four 8x8 matrices of 16-bit elements by ldmatrix. `place` is the address that this lane
  /// provides: lane l provides row l % 8 of matrix l / 8.
  SmallVector<Value> loadMatrices(Value place, bool transposed);
  /// Packs two f32 values as 16-bit floats into one 32-bit word, `low` in the low half.
  Value pack(Value low, Value high, Type element);
  /// Stores two f32 values as adjacent elements of the pointer's type. The address is aligned to
  /// the size of the pair.
  void storePair(Value first, Value second, const Pointer &place);

protected:
  /// Emits volatile inline assembly whose results have the given types.
  SmallVector<Value> assembly(const Twine &text, const Twine &constraints, ValueRange operands,
                              TypeRange results);

private:
  DenseMap<Value, Pointer> bindings;
  SmallVector<Value> tensorMaps;
  Value scratchBase, sharedBase;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_GPUBUILDER_H
