//===- Sm90Builder.h - What Hopper has beyond sm_80 -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Boxes of tensors that come and go beside the threads, barriers in memory that count them, and
// products of warpgroups (four warps, 128 threads) whose factors lie in shared memory. Sections
// in parentheses are those of the PTX ISA document, chapter 9.7.
//
// A tile in shared memory is what boxes of 64 numbers of 16 bits in a row leave there: panels of
// 64 columns, one after another, each of `rows` rows of 128 bytes, whose chunks of 16 bytes
// are turned by the number of their row (swizzle of 128 bytes). It begins at a multiple of 1024
// bytes.
//
//   columns   0 .. 63          64 .. 127
//   row 0     base             base + rows · 128
//   row 1     base + 128       base + rows · 128 + 128
//
// Either its columns are the k of a product, or its rows are.
//
// Private to the stage.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H
#define FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H

#include "GpuBuilder.h"

namespace mlir::fsdp {

/// A factor of a product in shared memory.
struct SharedFactor {
  Value descriptor;           ///< of its first step, 64 bits
  SmallVector<int64_t> steps; ///< of k = 16 each: bytes from the first to it
  bool across;                ///< whether its rows, not its columns, are k
};

class Sm90Builder : public GpuBuilder {
public:
  using GpuBuilder::GpuBuilder;

  static constexpr int64_t groupThreads = 128,
                           groupRows = 64; ///< of a warpgroup, and of the sums that it has
  static constexpr int64_t panelBytes = 128, panelCols = 64; ///< of a row in a panel
  static constexpr int64_t tileAlignment = 1024, barrierBytes = 8;

  //===--- Roles -----------------------------------------------------------===//
  /// A value that all lanes of the warp have, as one that the assembler knows so (shfl.sync).
  Value uniform(Value value);
  /// Number of the own warpgroup in the block, uniform.
  Value warpgroup() { return uniform(div(thread(), groupThreads)); }
  Value threadOfGroup() { return rem(thread(), groupThreads); }
  /// Whether this is the one lane of its warp that is to act for it; all lanes ask (elect.sync).
  Value isElected();
  /// Registers of each thread of the warpgroup from here on, a multiple of 8 in 24 .. 256: fewer
  /// than before, or more once they are free (setmaxnreg). Where it stands must not depend on the
  /// thread within a warpgroup.
  void giveRegisters(int64_t count);
  void takeRegisters(int64_t count);

  //===--- Named barriers (bar, barrier) -----------------------------------===// / Waits until
  //`threads` (a multiple of 32) have come to barrier `number`, of 1 .. 15; or comes and goes on.
  void syncNamed(Value number, int64_t threads);
  void arriveNamed(Value number, int64_t threads);

  //===--- Barriers in memory (mbarrier) -----------------------------------===// / Makes one of 8
  // bytes whose phases end with `count` arrivals and all bytes expected; by one thread, which calls
  /// fenceBarriers() after the last and then meets the others.
  void initBarrier(Value barrier, int64_t count);
  void fenceBarriers();
  /// Waits until the phase of this parity (0: the first) has ended. A new barrier lets parity 1
  /// pass.
  void wait(Value barrier, Value parity);
  /// Arrives, and lets the phase wait for that many bytes of copies.
  void expect(Value barrier, int64_t bytes);
  void arrive(Value barrier);

  //===--- Boxes (cp.async.bulk.tensor, TMA) -------------------------------===// / What ordinary
  // stores of this thread wrote is seen by copies and products after (fence.proxy.async).
  void fenceAsync();
  /// Asks for a map before it is used.
  void prefetchMap(Value map);
  /// Begins to copy the box whose first element has these coordinates (i32, that of dimension 0
  /// first) to `target`; `barrier` counts its bytes, those beyond the tensor's ends too. By one
  /// thread.
  void copyBox(Value target, Value map, ValueRange coordinates, Value barrier);
  /// Begins to copy `bytes` (a multiple of 16, as both addresses) of global memory to `target`;
  /// `barrier` counts them.
  void copyBulk(Value target, Value source, Value bytes, Value barrier);
  /// Stores words of two numbers of 16 bits as four pieces of 8 x 8 in shared memory, where lane l
  /// names row l % 8 of piece l / 8 and has word l % 4 of row l / 4 of each (stmatrix).
  void storeMatrices(Value place, ArrayRef<Value> words);
  /// Begins to copy shared memory to a box; what lies beyond the tensor's ends is left out. By one
  /// thread, after fenceAsync() of all who wrote it and a barrier.
  void storeBox(Value map, ValueRange coordinates, Value source);
  /// Begins to copy `bytes` (a multiple of 16, as both addresses) of shared memory to global
  /// memory.
  void storeBulk(Value target, Value source, Value bytes);
  /// Begins to add `bytes` (a multiple of 16, as both addresses) of f32 to global memory, each as
  /// by an atomic addition.
  void addBulk(Value target, Value source, Value bytes);
  /// What this thread has begun to store since the last commit is one group.
  void commitStores();
  /// Waits for all groups but the latest `pending`: until they are done, or only until their source
  /// has been read.
  void waitForStores(int64_t pending, bool sourceOnly);

  //===--- Clusters --------------------------------------------------------===//
  /// Number of the own block in its cluster of blocks in x.
  Value blockInCluster();
  /// All threads of the cluster meet, and see what was written before (barrier.cluster). A block
  /// whose shared memory others use must not end before they have.
  void clusterBarrier();
  /// copyBox() to the same places in all of the first `blocks` blocks of the cluster; each one's
  /// own barrier counts.
  void copyBoxToCluster(Value target, Value map, ValueRange coordinates, Value barrier,
                        int64_t blocks);
  /// Arrives at the barrier that has this place in block `number` of the cluster.
  void arriveIn(Value barrier, Value number);

  //===--- Blocks of threads that wait for one another ---------------------===// / Orders bulk
  // copies of this thread, to and from global memory, with what it does itself (fence.proxy.async).
  void fenceGlobal();
  /// Waits until an i32 in global memory is `value`, and sees what was written before it became so
  /// (ld.acquire). Only for what a block of threads with a lower number does.
  void waitForValue(Value place, Value value);
  /// Adds 1 to an i32 in global memory, after all that this thread has written (red.release).
  void increment(Value place);

  //===--- Products (wgmma) ------------------------------------------------===// / Rows [r, r + ..)
  // of a tile with `rows` rows whose columns are k, of which there are `k` (a multiple of 16).
  //`place` / is row r, a multiple of 8, of the first panel.
  SharedFactor factorAlong(Value place, int64_t rows, int64_t k);
  /// Columns [c, c + ..) of a tile with `rows` rows, the first `k` of which are k. `place` is row 0
  /// of the panel in which column c, a multiple of 64, stands.
  SharedFactor factorAcross(Value place, int64_t rows, int64_t k);
  /// Begins, as one group, sums + lhs · rhs of 64 rows and `cols` columns (a multiple of 8 to 256)
  /// in cols / 2 registers as Layout::mmaSums(16, cols) has them for each warp; without sums it
  /// begins from 0. `element` is bf16 or f16. Nobody may touch the results before waitForSums().
  SmallVector<Value> multiply(ArrayRef<Value> sums, const SharedFactor &lhs,
                              const SharedFactor &rhs, int64_t cols, Type element);
  /// The same with lhs in registers, four words of two numbers for each step: those of
  /// mma.m16n8k16.
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> lhs, const SharedFactor &rhs,
                              int64_t cols, Type element);
  /// Waits for all groups but the latest `pending`; the results, as values for later ops. What else
  /// is in flight must be among `values` too, or be carried through untouched.
  SmallVector<Value> waitForSums(ArrayRef<Value> values, int64_t pending = 0);

protected:
  /// Volatile; results have the types given.
  SmallVector<Value> assembly(const Twine &text, const Twine &constraints, ValueRange operands,
                              TypeRange results);

private:
  Value describe(Value place, int64_t panelDistance);
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> registers,
                              const SharedFactor *lhs, const SharedFactor &rhs, int64_t cols,
                              Type element);
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H
