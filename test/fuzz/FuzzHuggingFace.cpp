//===- FuzzHuggingFace.cpp - Fuzz the reader of config.json -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is accepted and small becomes a model, which must be valid.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "HuggingFace.h"
#include "fsdp/IR/FSDP.h"
#include "fuzz/Fuzzing.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;

static bool isSmall(const ModelConfig &config) {
  constexpr int64_t most = 1024;
  return config.layers <= 3 && config.heads <= most && *config.seq <= most &&
         *config.headDim <= most;
}

static void generate(const ModelConfig &config) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<FSDPDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  bool isGPT2 = config.family == Family::GPT2;
  std::vector<Parameter> parameters = isGPT2 ? gpt2Parameters(config) : llamaParameters(config);
  Emitter emit(*module, config, parameters);
  isGPT2 ? emitGPT2(emit) : emitLlama(emit);
  if (failed(verify(*module)))
    std::abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fsdprt::fuzz::MemoryFile file;
  file.write(data, size);
  HuggingFaceResult read = readHuggingFaceConfig(file.getPath(), {});
  for (const std::string &message : read.errors)
    fsdprt::fuzz::expectReadable(message);
  for (const std::string &message : read.notes)
    fsdprt::fuzz::expectReadable(message);
  if (!read.errors.empty())
    return 0;
  std::vector<std::string> errors = read.config.resolve();
  for (const std::string &message : errors)
    fsdprt::fuzz::expectReadable(message);
  if (errors.empty() && isSmall(read.config))
    generate(read.config);
  return 0;
}
