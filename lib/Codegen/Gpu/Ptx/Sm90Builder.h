//===- Sm90Builder.h - Instructions that sm_90 adds to sm_80 ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Asynchronous copies of tensor boxes (TMA), barriers in memory that count their bytes, and
// products of warpgroups (four warps, 128 threads) with factors in shared memory. Sections in
// parentheses are those of the PTX ISA document, chapter 9.7.
//
// A tile in shared memory consists of panels, as copies of boxes of 64 16-bit elements leave
// them. A panel has 64 columns and `rows` rows of 128 bytes; panels follow one another. The
// 16-byte chunks of a row are permuted by the row's number (128-byte swizzle). A tile is
// aligned to 1024 bytes.
//
//   columns   0 .. 63          64 .. 127
//   row 0     base             base + rows · 128
//   row 1     base + 128       base + rows · 128 + 128
//
// Either the columns or the rows of a tile extend along the k of a product.
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
  Value descriptor;           ///< 64-bit descriptor of its first step
  SmallVector<int64_t> steps; ///< offset of each step of k = 16 from the first, in bytes
  bool across;                ///< whether its rows, not its columns, extend along k
};

class Sm90Builder : public GpuBuilder {
public:
  using GpuBuilder::GpuBuilder;

  /// Threads of a warpgroup, and rows of its accumulator.
  static constexpr int64_t groupThreads = 128, groupRows = 64;
  /// Bytes and elements of a panel's row.
  static constexpr int64_t panelBytes = 128, panelCols = 64;
  static constexpr int64_t tileAlignment = 1024, barrierBytes = 8;

  //===--- Roles -----------------------------------------------------------===//
  /// Returns the value of lane 0 (shfl.sync), so that the assembler knows it to be uniform.
  Value uniform(Value value);
  /// Returns the number of the block, read again, so that values which are computed from it need no
  /// registers before.
  Value blockAgain();
  /// Returns the number of this thread's warpgroup in the block, uniform.
  Value warpgroup() { return uniform(div(thread(), groupThreads)); }
  Value threadOfGroup() { return rem(thread(), groupThreads); }
  /// Returns true in one lane of the warp (elect.sync). All lanes must execute it.
  Value isElected();
  /// Sets the registers per thread of the warpgroup from here on (setmaxnreg), a multiple of
  /// 8 in 24 .. 256. giveRegisters() reduces them, takeRegisters() waits for free ones. Must
  /// be executed by all threads of the warpgroup.
  void giveRegisters(int64_t count);
  void takeRegisters(int64_t count);

  //===--- Named barriers (bar, barrier) -----------------------------------===//

  /// Arrives at barrier `number` (1 .. 15) and waits until `threads` threads (a multiple of
  /// 32) have arrived, or arrives without waiting.
  void syncNamed(Value number, int64_t threads);
  void arriveNamed(Value number, int64_t threads);

  //===--- Barriers in memory (mbarrier) -----------------------------------===//

  /// Initialises an 8-byte barrier whose phases end after `count` arrivals and all expected
  /// bytes. By one thread, which calls fenceBarriers() after the last one and then
  /// synchronises with the other threads.
  void initBarrier(Value barrier, int64_t count);
  void fenceBarriers();
  /// Waits until the phase of this parity (0: the first) has ended. On a new barrier, parity
  /// 1 does not wait.
  void wait(Value barrier, Value parity);
  /// Arrives and adds `bytes` bytes of copies to those that the phase waits for.
  void expect(Value barrier, int64_t bytes);
  void arrive(Value barrier);

  //===--- Boxes (cp.async.bulk.tensor, TMA) -------------------------------===//

  /// Makes this thread's earlier ordinary stores visible to later copies and products
  /// (fence.proxy.async).
  void fenceAsync();
  /// Prefetches the descriptor of a tensor map.
  void prefetchMap(Value map);
  /// Starts to copy the box whose first element has these coordinates (i32, dimension 0 first) to
  /// `target`. `barrier` counts its bytes, including those outside the tensor. By one thread.
  void copyBox(Value target, Value map, ValueRange coordinates, Value barrier);
  /// Starts to copy `bytes` bytes of global memory to `target`; `barrier` counts them. The
  /// size and both addresses are multiples of 16 bytes.
  void copyBulk(Value target, Value source, Value bytes, Value barrier);
  /// Stores words of two 16-bit elements as four 8x8 matrices in shared memory (stmatrix).
  /// Lane l addresses row l % 8 of matrix l / 8 and holds word l % 4 of row l / 4 of each.
  void storeMatrices(Value place, ArrayRef<Value> words);
  /// Starts to copy shared memory to a box; elements outside the tensor are skipped. By one
  /// thread, after fenceAsync() of all writers and a barrier.
  void storeBox(Value map, ValueRange coordinates, Value source);
  /// Starts to copy `bytes` bytes of shared memory to global memory. Sizes as for copyBulk().
  void storeBulk(Value target, Value source, Value bytes);
  /// Starts to add f32 values in shared memory to global memory, each by an atomic addition.
  /// Sizes as for copyBulk().
  void addBulk(Value target, Value source, Value bytes);
  /// Ends a group of the stores started since the last commit.
  void commitStores();
  /// Waits until at most the latest `pending` groups are incomplete, or, with `sourceOnly`,
  /// until their sources have been read.
  void waitForStores(int64_t pending, bool sourceOnly);

  //===--- Clusters --------------------------------------------------------===//
  /// Returns the number of this block in its cluster.
  Value blockInCluster();
  /// Synchronises all threads of the cluster; earlier writes are visible (barrier.cluster). A
  /// block must not exit while other blocks use its shared memory.
  void clusterBarrier();
  /// Like copyBox(), to the same offset in each of the first `blocks` blocks of the cluster.
  /// Each block's own barrier counts.
  void copyBoxToCluster(Value target, Value map, ValueRange coordinates, Value barrier,
                        int64_t blocks);
  /// Arrives at the barrier at the same offset in block `number` of the cluster.
  void arriveIn(Value barrier, Value number);

  //===--- Synchronisation between blocks ----------------------------------===//

  /// Orders this thread's bulk copies to and from global memory with its own accesses
  /// (fence.proxy.async).
  void fenceGlobal();
  /// Waits until an i32 in global memory equals `value`; earlier writes of the thread that stored
  /// it are visible (ld.acquire). Only a block with a lower number may store the value.
  void waitForValue(Value place, Value value);
  /// Adds 1 to an i32 in global memory after all earlier writes of this thread (red.release).
  void increment(Value place);

  //===--- Products (wgmma) ------------------------------------------------===//

  /// Describes rows [r, r + ..) of a tile with `rows` rows whose columns extend along k, for
  /// `k` columns (a multiple of 16). `place` is row r, a multiple of 8, of the first panel.
  SharedFactor factorAlong(Value place, int64_t rows, int64_t k);
  /// Describes columns [c, c + ..) of a tile with `rows` rows, of which the first `k` extend
  /// along k. `place` is row 0 of the panel that contains column c, a multiple of 64.
  SharedFactor factorAcross(Value place, int64_t rows, int64_t k);
  /// Starts, as one group, sums + lhs · rhs for 64 rows and `cols` columns (a multiple of 8,
  /// up to 256). The result has cols / 2 registers in the layout Layout::mmaSums(16, cols) of
  /// each warp. Without `sums` it starts from 0. `element` is bf16 or f16. The results must
  /// not be used before waitForSums().
  SmallVector<Value> multiply(ArrayRef<Value> sums, const SharedFactor &lhs,
                              const SharedFactor &rhs, int64_t cols, Type element);
  /// The same with lhs in registers: four words of two elements per step, as in mma.m16n8k16.
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> lhs, const SharedFactor &rhs,
                              int64_t cols, Type element);
  /// Waits until at most the latest `pending` groups are incomplete. Returns `values` for later
  /// ops. Results of the other products in flight must be among `values` too, or stay unused
  /// until a later wait.
  SmallVector<Value> waitForSums(ArrayRef<Value> values, int64_t pending = 0);

protected:
  /// Emits volatile inline assembly whose results have the given types.
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
