//===- SplitProducts.h - Exact products of f32 with wgmma -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_PTX_SPLITPRODUCTS_H
#define FSDP_LIB_CODEGEN_GPU_PTX_SPLITPRODUCTS_H

#include "Sm90Builder.h"

namespace mlir::fsdp {

/// Number of warps of the first warpgroup that split tiles. They follow its first warp.
inline constexpr int64_t splittingWarps = 3;
/// Number of words of the left factor that a thread holds for a step of 8 values of k.
inline constexpr int64_t wordsPerStep = 4;

/// Emits one splitting warp's share of a tile of `bytes` bytes, a multiple of 1024. The low parts
/// follow the tile, and the high parts replace the values.
void splitTile(Sm90Builder &b, Value tile, int64_t bytes);

/// Emits one splitting warp's share of a transposition: of a tile of f32 with `rows` rows, 16 or a
/// multiple of 32, to one with `cols` rows, a multiple of 16. The rows have the order of
/// accumulators. Low parts are written `lowDistance` bytes behind high parts, unless this is 0. Of
/// 16 rows, the columns begin at `firstCol`, 0 or 16.
void transposeTile(Sm90Builder &b, Value from, int64_t rows, Value to, int64_t cols,
                   int64_t lowDistance, int64_t firstCol = 0);

/// Starts the products sums + lhs · rhs, one group for each step of k, of which at most `pending`
/// run. `wordsOf` returns the f32 words of lhs for a step. Calls `beforeStep` for each step, after
/// the products of all steps except the previous `pending` - 1 have ended. In `rhs`, each low part
/// is `lowDistance` bytes behind its high part.
SmallVector<Value> multiplySplit(Sm90Builder &b, ArrayRef<Value> sums,
                                 function_ref<SmallVector<Value>(int64_t)> wordsOf,
                                 const SharedFactor &rhs, int64_t lowDistance, int64_t cols,
                                 int64_t pending, function_ref<void(int64_t)> beforeStep = nullptr);
/// Starts lhs · rhs with lhs in shared memory: rows whose steps of k are at `places` behind `lhs`.
/// Its words are loaded `ahead` steps before they are multiplied.
SmallVector<Value> multiplySplitRows(Sm90Builder &b, Value lhs, ArrayRef<int64_t> places,
                                     const SharedFactor &rhs, int64_t lowDistance, int64_t cols,
                                     int64_t pending, int64_t ahead);
/// Returns the words of accumulators as a left factor, for a right factor of transposeTile(). Words
/// of a factor that is not split are rounded to TF32.
SmallVector<Value> toWideFactor(Sm90Builder &b, ArrayRef<Value> sums, bool splits);
/// Starts these products as one group, from the words of all steps.
SmallVector<Value> multiplySplitAtOnce(Sm90Builder &b, ArrayRef<Value> sums, ArrayRef<Value> words,
                                       const SharedFactor &rhs, int64_t lowDistance, int64_t cols);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_GPU_PTX_SPLITPRODUCTS_H
