//===- Passes.h - Passes of the Shard stage ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_PASSES_H
#define FSDP_SHARD_PASSES_H

#include "fsdp/Options/Defaults.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace fsdp {

#define GEN_PASS_DECL
#include "fsdp/Shard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fsdp/Shard/Passes.h.inc"

struct StepOptions;
/// Appends the passes of Shard, which convert a model to a sharded forward. The last pass is
/// fsdp-verify-sharded.
void buildShardPipeline(OpPassManager &pm, const StepOptions &options);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_PASSES_H
