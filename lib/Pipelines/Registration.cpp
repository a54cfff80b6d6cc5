//===- Registration.cpp - Dialects and passes of the project ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Analysis/Passes.h"
#include "fsdp/Codegen/Passes.h"
#include "fsdp/Differentiate/Passes.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Import/Pipeline.h"
#include "fsdp/Plan/Passes.h"
#include "fsdp/Plan/Pipeline.h"
#include "fsdp/Shard/Passes.h"
#include "fsdp/Shard/Pipeline.h"
#include "fsdp/Update/Passes.h"
#include "fsdp/Update/Pipeline.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

using namespace mlir;

void fsdp::registerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<FSDPDialect>();
}

void fsdp::registerPasses() {
  registerFSDPAnalysisPasses();
  registerFSDPImportPasses();
  registerImportPipeline();
  registerFSDPShardPasses();
  registerShardPipeline();
  registerFSDPDifferentiatePasses();
  registerFSDPUpdatePasses();
  registerUpdatePipeline();
  registerFSDPFusePasses();
  registerFSDPPlanPasses();
  registerPlanPipeline();
  registerFSDPCodegenPasses();
}
