//===- Sm90Builder.h - Instructions that sm_90 adds to sm_80 ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emits asynchronous copies of tensor boxes (TMA), mbarriers that count the copied bytes, and
// products of warpgroups (four warps, 128 threads) with factors in shared memory. The section
// headings contain names of the PTX ISA document, chapter 9.7, in parentheses.
//
// A tile in shared memory consists of panels. A panel has the layout of a copied box with 64
// elements of 16 bits per row. It has 64 columns and `rows` rows of 128 bytes. The panels of a tile
// follow one another without gaps. The 16-byte chunks of a row are permuted depending on the number
// of the row (128-byte swizzle). A tile is aligned to 1024 bytes.
//
//   columns   0 .. 63          64 .. 127
//   row 0     base             base + rows · 128
//   row 1     base + 128       base + rows · 128 + 128
//
// In a product, the values of k are either the columns or the rows of a tile.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H
#define FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H

#include "GpuBuilder.h"

namespace mlir::fsdp {

/// A factor of a product in shared memory.
struct SharedFactor {
  Value descriptor;           ///< 64-bit matrix descriptor of the first step of k
  SmallVector<int64_t> steps; ///< offset of each step of k from the first, in bytes
  bool across;                ///< true if rows extend along k, false if columns do
};

class Sm90Builder : public GpuBuilder {
public:
  using GpuBuilder::GpuBuilder;

  /// Number of threads of a warpgroup, and number of rows of a warpgroup's accumulator.
  static constexpr int64_t groupThreads = 128, groupRows = 64;
  /// Size of a panel's row in bytes and in elements.
  static constexpr int64_t panelBytes = 128, panelCols = 64;
  static constexpr int64_t tileAlignment = 1024, barrierBytes = 8;

  //===--- Roles -----------------------------------------------------------===//
  /// Returns the value of lane 0 (shfl.sync), so that the assembler knows that the value is the
  /// same in all lanes.
  Value uniform(Value value);
  /// Reads the number of the block again. Values that are computed from this number then need no
  /// registers before this point.
  Value blockAgain();
  /// Returns the number of this thread's warpgroup in the block, after a call of uniform().
  Value warpgroup() { return uniform(div(thread(), groupThreads)); }
  Value threadOfGroup() { return rem(thread(), groupThreads); }
  /// Returns true in one lane of the warp (elect.sync). All lanes must execute the instruction.
  Value isElected();
  /// Change the number of registers per thread of the warpgroup to `count` (setmaxnreg), which must
  /// be a multiple of 8 in 24 .. 256. giveRegisters() reduces the number. takeRegisters() raises
  /// the number and waits for free registers. All threads of the warpgroup must execute the
  /// instruction.
  void giveRegisters(int64_t count);
  void takeRegisters(int64_t count);

  //===--- Named barriers (bar, barrier) -----------------------------------===//

  /// Arrive at the named barrier `number` (1 .. 15). syncNamed() then also waits until `threads`
  /// threads (a multiple of 32) have arrived.
  void syncNamed(Value number, int64_t threads);
  void arriveNamed(Value number, int64_t threads);

  //===--- Barriers in memory (mbarrier) -----------------------------------===//

  /// Initialises a barrier of 8 bytes. A phase of the barrier ends after `count` arrivals and when
  /// all expected bytes have arrived. One thread calls initBarrier() for all barriers, then
  /// fenceBarriers(), and then synchronises with the other threads.
  void initBarrier(Value barrier, int64_t count);
  void fenceBarriers();
  /// Waits until the phase with parity `parity` has ended. The first phase has parity 0. On a new
  /// barrier, a wait for parity 1 returns at once.
  void wait(Value barrier, Value parity);
  /// Arrives at the barrier, and adds `bytes` to the number of bytes that must arrive before the
  /// phase ends.
  void expect(Value barrier, int64_t bytes);
  void arrive(Value barrier);

  //===--- Boxes (cp.async.bulk.tensor, TMA) -------------------------------===//

  /// Makes this thread's earlier ordinary stores to shared memory visible to later copies and
  /// products (fence.proxy.async).
  void fenceAsync();
  /// Prefetches the descriptor of a tensor map.
  void prefetchMap(Value map);
  /// Starts to copy the box whose first element has these coordinates (i32, dimension 0 first) to
  /// `target`. `barrier` counts the bytes of the box, including bytes outside the tensor. One
  /// thread runs this code.
  void copyBox(Value target, Value map, ValueRange coordinates, Value barrier);
  /// Starts to copy `bytes` bytes of global memory to `target`. `barrier` counts these bytes. The
  /// size and both addresses must be multiples of 16 bytes.
  void copyBulk(Value target, Value source, Value bytes, Value barrier);
  /// Stores words of two 16-bit elements as four 8x8 matrices in shared memory (stmatrix). Lane l
  /// provides the address of row l % 8 of matrix l / 8, and holds word l % 4 of row l / 4 of each
  /// matrix.
  void storeMatrices(Value place, ArrayRef<Value> words);
  /// Returns the offset, in a panel of 64 rows, of the matrix row that a thread of a warpgroup
  /// provides to ldmatrix or stmatrix for the first 32 bytes of the rows. For the next 32 bytes, it
  /// is the exclusive or with 32.
  Value matrixRowOfThread(Value threadOfGroup);
  /// Starts to copy shared memory to a box. Elements outside the tensor are not written. One thread
  /// runs this code. All threads that wrote the memory must have called fenceAsync() and passed a
  /// barrier.
  void storeBox(Value map, ValueRange coordinates, Value source);
  /// Starts to copy `bytes` bytes of shared memory to global memory, aligned as for copyBulk().
  void storeBulk(Value target, Value source, Value bytes);
  /// Starts to add f32 values in shared memory to global memory, each by an atomic addition.
  /// Requires the alignment of copyBulk().
  void addBulk(Value target, Value source, Value bytes);
  /// Ends a group of stores. The group has the stores that this thread started since the last
  /// commit.
  void commitStores();
  /// Waits until all groups except the latest `pending` groups are complete. If `sourceOnly` is
  /// true, waits only until the sources of these groups have been read.
  void waitForStores(int64_t pending, bool sourceOnly);

  //===--- Clusters --------------------------------------------------------===//
  /// Returns the number of this block in its cluster.
  Value blockInCluster();
  /// Synchronises all threads of the cluster and makes their earlier writes visible
  /// (barrier.cluster). A block must not exit while other blocks use its shared memory.
  void clusterBarrier();
  /// Copies a box as copyBox() does, but to the same offset in each of the first `blocks` blocks of
  /// the cluster. The barrier at the same offset in each of these blocks counts the bytes.
  void copyBoxToCluster(Value target, Value map, ValueRange coordinates, Value barrier,
                        int64_t blocks);
  /// Arrives at a barrier in block `number` of the cluster: the barrier that has the same offset as
  /// `barrier`.
  void arriveIn(Value barrier, Value number);

  //===--- Synchronisation between blocks ----------------------------------===//

  /// Orders this thread's bulk copies from and to global memory with its ordinary accesses to
  /// global memory (fence.proxy.async).
  void fenceGlobal();
  // Waits until an i32 in global memory equals `value`. Earlier writes of the thread that stored
  // the value are then visible (ld.acquire). A block with a lower number must store the value.
  void waitForValue(Value place, Value value);
  /// Adds 1 to an i32 in global memory after all earlier writes of this thread (red.release).
  void increment(Value place);

  //===--- Products (wgmma) ------------------------------------------------===//

  /// Returns a factor of a product. The factor consists of the rows of a tile that begin at row r,
  /// a multiple of 8. The first `k` columns of the tile (a multiple of 32 bytes) are the values of
  /// k. The tile has `rows` rows, and `place` is the address of row r in the first panel.
  SharedFactor factorAlong(Value place, int64_t rows, int64_t k, int64_t elementBytes = 2);
  /// Returns a factor of a product. The factor consists of the columns of a tile that begin at
  /// column c, a multiple of 64. The tile has `rows` rows, of which the first `k` rows are the
  /// values of k. `place` is the address of row 0 of the panel that begins with column c.
  SharedFactor factorAcross(Value place, int64_t rows, int64_t k);
  /// Starts the computation of sums + lhs · rhs as one group, for 64 rows and `cols` columns (a
  /// multiple of 8, up to 256). The result is cols / 2 registers, which in each warp have the
  /// layout Layout::mmaSums(16, cols). If `sums` is empty, the product starts from 0. `element` is
  /// bf16, f16 or f32, whose elements are TF32 and extend along k. The results must not be used
  /// before waitForSums().
  SmallVector<Value> multiply(ArrayRef<Value> sums, const SharedFactor &lhs,
                              const SharedFactor &rhs, int64_t cols, Type element);
  /// Starts the product sums + lhs · rhs with lhs in registers: four words of two elements per
  /// step, as in mma.m16n8k16.
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> lhs, const SharedFactor &rhs,
                              int64_t cols, Type element);
  /// Waits until all products except the latest `pending` products are complete. Returns `values`
  /// in the form in which later ops must use them. The results of products that are not complete
  /// must be among `values`, or must not be used before a later wait.
  SmallVector<Value> waitForSums(ArrayRef<Value> values, int64_t pending = 0);

private:
  Value describe(Value place, int64_t panelDistance);
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> registers,
                              const SharedFactor *lhs, const SharedFactor &rhs, int64_t cols,
                              Type element);
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_SM90BUILDER_H
