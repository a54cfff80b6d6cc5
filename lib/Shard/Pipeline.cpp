//===- Pipeline.cpp - The Shard stage ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/Pipeline.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::buildShardPipeline(OpPassManager &pm, const ShardOptions &options) {
  ApplyPrecisionPassOptions precision;
  precision.paramDtype = options.paramDtype;
  precision.outputDtype = options.outputDtype;
  pm.addPass(createApplyPrecisionPass(precision));
  FormUnitsPassOptions form;
  form.mesh = options.mesh;
  form.strategy = options.strategy;
  form.policy = options.policy;
  form.layerPattern = options.layerPattern;
  form.wrapFile = options.wrapFile;
  form.minNumParams = options.minNumParams;
  form.freeze = options.freeze;
  form.ignore = options.ignore;
  form.reshard = options.reshardAfterForward;
  form.rootReshard = options.reshardRoot;
  form.gatherRows = options.gatherRows;
  form.paramStorage = options.paramStorage;
  form.remarks = options.remarks;
  pm.addPass(createFormUnitsPass(form));
  InsertUnshardPassOptions insert;
  insert.gradAccum = options.gradAccum;
  insert.gradSync = options.gradSync;
  pm.addPass(createInsertUnshardPass(insert));
  pm.addPass(createVerifyShardedPass());
}

namespace {
/// ShardOptions as options of a textual pipeline.
struct ShardPipelineOptions : PassPipelineOptions<ShardPipelineOptions> {
  Option<std::string> paramDtype{*this, "param-dtype", llvm::cl::desc("f32, bf16 or f16"),
                                 llvm::cl::init(ShardOptions().paramDtype)};
  Option<std::string> outputDtype{*this, "output-dtype", llvm::cl::desc("f32, or the param-dtype"),
                                  llvm::cl::init(ShardOptions().outputDtype)};
  Option<std::string> mesh{*this, "mesh", llvm::cl::desc("Ranks per axis"),
                           llvm::cl::init(ShardOptions().mesh)};
  Option<std::string> strategy{*this, "sharding-strategy", llvm::cl::desc("Where tensors live"),
                               llvm::cl::init(ShardOptions().strategy)};
  Option<std::string> policy{*this, "auto-wrap-policy", llvm::cl::desc("How units are found"),
                             llvm::cl::init(ShardOptions().policy)};
  Option<std::string> layerPattern{*this, "transformer-layer", llvm::cl::desc("Prefixes of layers"),
                                   llvm::cl::init(ShardOptions().layerPattern)};
  Option<std::string> wrapFile{*this, "wrap", llvm::cl::desc("List of units")};
  Option<int64_t> minNumParams{*this, "min-num-params",
                               llvm::cl::desc("Elements of the smallest unit"),
                               llvm::cl::init(ShardOptions().minNumParams)};
  Option<std::string> freeze{*this, "freeze", llvm::cl::desc("Parameters that are not trained")};
  Option<std::string> ignore{*this, "ignore-params",
                             llvm::cl::desc("Parameters that are not sharded")};
  Option<std::string> reshardAfterForward{
      *this, "reshard-after-forward",
      llvm::cl::desc("Gather again in the backward: true, false or among how many neighbours"),
      llvm::cl::init(ShardOptions().reshardAfterForward)};
  Option<std::string> gatherRows{*this, "gather-rows", llvm::cl::desc("auto, always or never"),
                                 llvm::cl::init(ShardOptions().gatherRows)};
  Option<std::string> reshardRoot{*this, "reshard-root",
                                  llvm::cl::desc("When the root unit is dropped"),
                                  llvm::cl::init(ShardOptions().reshardRoot)};
  Option<std::string> paramStorage{*this, "param-storage",
                                   llvm::cl::desc("How narrow parameters are kept"),
                                   llvm::cl::init(ShardOptions().paramStorage)};
  Option<std::string> gradSync{*this, "grad-sync", llvm::cl::desc("When gradients cross ranks"),
                               llvm::cl::init(ShardOptions().gradSync)};
  Option<int64_t> gradAccum{*this, "grad-accum", llvm::cl::desc("Micro-batches per rank and step"),
                            llvm::cl::init(ShardOptions().gradAccum)};
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("One remark per unit"),
                       llvm::cl::init(ShardOptions().remarks)};
};
} // namespace

void fsdp::registerShardPipeline() {
  PassPipelineRegistration<ShardPipelineOptions>(
      "fsdp-shard", "The model contract to a sharded forward",
      [](OpPassManager &pm, const ShardPipelineOptions &options) {
        ShardOptions plain;
        plain.paramDtype = options.paramDtype;
        plain.outputDtype = options.outputDtype;
        plain.mesh = options.mesh;
        plain.strategy = options.strategy;
        plain.policy = options.policy;
        plain.layerPattern = options.layerPattern;
        plain.wrapFile = options.wrapFile;
        plain.minNumParams = options.minNumParams;
        plain.freeze = options.freeze;
        plain.ignore = options.ignore;
        plain.reshardAfterForward = options.reshardAfterForward;
        plain.reshardRoot = options.reshardRoot;
        plain.gatherRows = options.gatherRows;
        plain.gradSync = options.gradSync;
        plain.paramStorage = options.paramStorage;
        plain.gradAccum = options.gradAccum;
        plain.remarks = options.remarks;
        buildShardPipeline(pm, plain);
      });
}
