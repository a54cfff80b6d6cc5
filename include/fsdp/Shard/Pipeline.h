//===- Pipeline.h - The Shard stage -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_PIPELINE_H
#define FSDP_SHARD_PIPELINE_H

#include <cstdint>
#include <string>

namespace mlir {
class OpPassManager;

namespace fsdp {

/// What a user says about sharding. Strings are checked by the passes, which
/// report what is wrong with them.
struct ShardOptions {
  std::string paramDtype;                   ///< `--param-dtype`; empty: the model's
  std::string outputDtype;                  ///< `--output-dtype`; empty: f32
  std::string mesh = "shard=1";             ///< `[replicate=R,]shard=S`
  std::string strategy = "full_shard";      ///< `--sharding-strategy`
  std::string policy = "transformer";       ///< `--auto-wrap-policy`
  std::string layerPattern;                 ///< `--transformer-layer`
  std::string wrapFile;                     ///< `--wrap`
  int64_t minNumParams = 0;                 ///< `--min-num-params`
  std::string freeze;                       ///< `--freeze`
  std::string ignore;                       ///< `--ignore-params`
  std::string reshardAfterForward = "true"; ///< `--reshard-after-forward`
  std::string reshardRoot = "backward";     ///< `--reshard-root`
  std::string gatherRows = "auto";          ///< `--gather-rows`
  std::string paramStorage = "master";      ///< `--param-storage`
  std::string gradSync = "auto";            ///< `--grad-sync`
  int64_t gradAccum = 1;                    ///< `--grad-accum`
  bool remarks = false;                     ///< one remark per unit
};

/// Model contract in, sharded forward out; ends in `fsdp-verify-sharded`.
void buildShardPipeline(OpPassManager &pm, const ShardOptions &options);
/// `fsdp-shard`, for fsdp-opt.
void registerShardPipeline();

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_PIPELINE_H
