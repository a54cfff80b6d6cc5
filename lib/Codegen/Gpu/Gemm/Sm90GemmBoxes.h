//===- Sm90GemmBoxes.h - Epilogue of contractions in boxes ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_GPU_GEMM_SM90GEMMBOXES_H
#define FSDP_LIB_CODEGEN_GPU_GEMM_SM90GEMMBOXES_H

#include "Codegen/Gpu/Ptx/Sm90Builder.h"
#include "GpuGemmEpilogue.h"

namespace mlir::fsdp::gemm {

/// A stage of the ring: its memory, its barriers, and the parity of its current phase.
struct GemmStage {
  Value begin, full, empty, parity;
  Value split; ///< null unless the kernel splits factors
};

/// Number of tensor maps of the factors. The maps of the epilogue follow them.
inline constexpr int64_t factorMaps = 2;

/// Returns the coordinates of a box. The map of `operand` has the dimensions `first` and `second`
/// before the others.
SmallVector<Value> coordinatesOf(GpuBuilder &b, const Operand &operand, int first, int second,
                                 const Position &position);

class BoxEpilogue {
public:
  /// Returns stage `number` of the epilogue. These stages follow those of the factors.
  using StageAt = function_ref<GemmStage(int64_t number)>;
  using Release = function_ref<void(const GemmStage &)>;
  using Inputs = SmallVector<GpuEpilogue::Loaded>;
  /// The rows of the result that a warpgroup computes. `chunk` is its memory for results.
  struct Place {
    Value outer, firstRow, firstCol, group, thread, chunk;
  };

  BoxEpilogue(Sm90Builder &b, const Problem &problem, const GpuPlan &plan, func::FuncOp kernel,
              EpilogueBoxes boxes);

  /// Number of stages that the boxes of a tile's loads occupy.
  int64_t stages() const { return boxes.stages(plan); }
  /// Copies the boxes of the tile at `corner` to stages.
  void produce(const Position &corner, StageAt stageAt);
  /// Loads the vectors that the first panel of a tile needs. Emit this before the main loop, so
  /// that the latency of the loads is hidden: ptxas would move the wait for the last product before
  /// them.
  Inputs begin(const Place &place) { return loadVectors(place, 0); }
  /// Applies the epilogue to a tile and stores its results. `inputs` is the result of begin().
  void finish(const Place &place, ArrayRef<Value> sums, Inputs inputs, StageAt stageAt,
              Release release);
  /// Waits until all results have been stored.
  void end(Value thread);

private:
  using Words = SmallVector<Value>;
  Inputs loadVectors(const Place &place, int64_t panel);
  Value laneOfPairs(Value thread);
  SmallVector<SmallVector<Value>> awaitBoxes(const Place &place, int64_t panel, StageAt stageAt,
                                             SmallVectorImpl<GemmStage> &done);
  void readPairs(const EpilogueBox &load, ArrayRef<Value> begins, int64_t step, Value thread,
                 Inputs &inputs);
  void compute(ArrayRef<Value> sums, const Inputs &inputs, int64_t step,
               MutableArrayRef<Words> words);
  SmallVector<Words> computePanel(const Place &place, int64_t panel, ArrayRef<Value> sums,
                                  Inputs inputs, StageAt stageAt, Release release);
  void write(const EpilogueBox &store, int64_t half, const Words &words, Value target,
             Value thread);
  void storePanel(const Place &place, int64_t panel, ArrayRef<Words> results);
  SmallVector<Value> boxAt(const EpilogueBox &box, const Position &corner, int64_t panel,
                           int64_t half);

  Sm90Builder &b;
  const Problem &problem;
  const GpuPlan &plan;
  const GpuPlan pairs; ///< the plan with strips of two elements
  GpuEpilogue epilogue;
  const EpilogueBoxes boxes;
  const int64_t panels;
};

} // namespace mlir::fsdp::gemm

#endif // FSDP_LIB_CODEGEN_GPU_GEMM_SM90GEMMBOXES_H
