//===- fsdp-modelgen.cpp - Write the loss function of a transformer --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Read the command line and config.json               Options, HuggingFace
// 2. Declare the parameters, build the function           GPT2, Llama, Emitter
// 3. Verify and print the module; report the number of parameters
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "Options.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;

static OwningOpRef<ModuleOp> generate(MLIRContext &context, const ModelConfig &config,
                                      ArrayRef<Parameter> parameters) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  if (config.seed)
    (*module)->setAttr(FSDPDialect::seedAttr, Builder(&context).getI64IntegerAttr(*config.seed));
  Emitter emit(*module, config, parameters);
  config.family == Family::GPT2 ? emitGPT2(emit) : emitLlama(emit);
  return module;
}

/// Prints a line such as "6.7B llama: 6,738,415,616 parameters in 291 tensors".
static void report(const ModelConfig &config, ArrayRef<Parameter> parameters) {
  int64_t count = 0;
  for (const Parameter &parameter : parameters)
    count += ShapedType::getNumElements(parameter.shape);
  double rounded = count;
  StringRef units[] = {"", "K", "M", "B", "T", "Q"};
  unsigned unit = 0;
  for (; rounded >= 999.5 && unit + 1 < std::size(units); ++unit)
    rounded /= 1000;
  llvm::errs() << llvm::format(rounded < 9.95 && unit ? "%.1f" : "%.0f", rounded)
               << llvm::formatv("{0} {1}: {2:N} parameters in {3} tensors\n", units[unit],
                                nameOf(config.family), count, parameters.size());
}

static LogicalResult write(ModuleOp module, StringRef path) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().printNameLocAsPrefix());
  std::string problem = writeOutput(path, text);
  if (!problem.empty())
    llvm::errs() << "fsdp-modelgen: error: " << problem << "\n";
  return success(problem.empty());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-modelgen");
  std::optional<Request> request = parseCommandLine(argc, argv);
  if (!request)
    return 2;
  if (std::optional<std::string> problem = whyNotWritable(request->output, request->input)) {
    llvm::errs() << "fsdp-modelgen: error: " << *problem << "\n";
    return 2;
  }

  const ModelConfig &config = request->config;
  std::vector<Parameter> parameters =
      config.family == Family::GPT2 ? gpt2Parameters(config) : llamaParameters(config);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<FSDPDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                      math::MathDialect, tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = generate(context, config, parameters);
  if (failed(verify(*module)) || failed(write(*module, request->output)))
    return 1;
  report(config, parameters);
  return 0;
}
