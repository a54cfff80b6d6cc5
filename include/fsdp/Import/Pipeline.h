//===- Pipeline.h - Foreign MLIR to the model contract ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PIPELINE_H
#define FSDP_IMPORT_PIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
namespace fsdp {

/// What a user says about a foreign module. Everything has a default.
struct ImportOptions {
  /// The function to train; empty: the only public one.
  std::string entry;
  /// Which arguments and constants are parameters: positions and names, `0-148,150,h.*`.
  /// Empty: the marked ones. Where nothing is named, a guess with a warning; `auto`: without one.
  std::string params;
  /// JSON list of {"index"|"name"|"resource", "rename", "init", "frozen"}.
  std::string paramsFile;
  /// Names of batch inputs, each `INDEX=NAME`.
  std::vector<std::string> batch;
  /// Contents of buffers, each `NAME|INDEX=causal|zeros|ones|keep|FILE`.
  std::vector<std::string> buffers;
  /// Loss behind logits: empty (the module has one) or "cross_entropy".
  std::string attachLoss;
  /// Value of the targets that do not count in the attached loss; empty: all count.
  std::string ignoreIndex;
  /// Products around a softmax become fsdp.attention: "true"; "assume-keys": also where only finite
  /// numbers mask, and no row is provably left with a key; "false".
  std::string raiseAttention = "true";
};

/// Foreign MLIR to the model contract of docs/Pipeline.md §1.
void buildImportPipeline(OpPassManager &pm, const ImportOptions &options);

/// Registers `fsdp-import{entry=... params=...}` for tools that parse pipelines.
void registerImportPipeline();

/// Reads a model. On text that this MLIR cannot parse, says what it expects and
/// how to produce it. Null after an error.
OwningOpRef<ModuleOp> parseModel(StringRef path, MLIRContext *context);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_IMPORT_PIPELINE_H
