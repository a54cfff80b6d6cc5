//===- fsdp-compile.cpp - Compile a training step ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AlsoMesh.h"
#include "CommandLine.h"
#include "FileOptions.h"
#include "ModelInput.h"
#include "SearchAnswer.h"
#include "WhatIf.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/MemoryLimit.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "fsdp/Codegen/Passes.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Package/Package.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Report/Explain.h"
#include "fsdp/Report/ReportPage.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Tools/ToolMain.h"
#include "fsdpcommon/ShortText.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Writes a file with the text that `write` prints. At no time does the file contain only a part of
/// the text.
static LogicalResult writeText(MLIRContext *context, StringRef path,
                               llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::string text;
  llvm::raw_string_ostream os(text);
  write(os);
  return writeFile(path, ArrayRef(text.data(), text.size()), UnknownLoc::get(context));
}

static LogicalResult writeModule(ModuleOp module, StringRef path) {
  return writeText(module.getContext(), path, [&](llvm::raw_ostream &os) { module.print(os); });
}

static LogicalResult writePage(const StepCompilation &step) {
  ModuleOp planned = *step.module;
  const DriverOptions &driver = step.options.driver;
  FailureOr<Cluster> cluster = loadCluster(planned.getContext(), chooseCluster(step.options));
  if (failed(cluster))
    return failure();
  std::string title =
      "Training step of " +
      fsdpcommon::shortText(llvm::sys::path::filename(driver.input), StringRef::npos);
  return writeText(planned.getContext(), driver.report, [&](llvm::raw_ostream &os) {
    writeReport(planned, *cluster, step.dtypes, measureKernels(planned, step.kernels, *cluster),
                title, os);
  });
}

/// Plans the step with `sync` as the value of --grad-sync. Returns the measures of this plan.
static FailureOr<ChoiceReport> planOtherwise(StepOptions options, GradSync sync,
                                             MLIRContext &context) {
  // The first plan has already reported the diagnostics.
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  options.shard.gradSync = sync;
  options.driver.timing = false;
  options.driver.dumpPhasesTo.clear();
  if (options.driver.input == "-")
    return failure();
  StepCompilation step{parseModel(options.driver.input, &context, getParseLimits(options.driver)),
                       options, /*code=*/false};
  if (!step.module || failed(runPhases(step, "import", "codegen")))
    return failure();
  return measureChoice(*step.module, "--grad-sync=" + printValue(sync).front(),
                       /*isTaken=*/false);
}

/// Returns the measures of two plans: one with --grad-sync=each and one with --grad-sync=last.
static SmallVector<ChoiceReport> compareAccumulation(const StepCompilation &step) {
  MLIRContext &context = *ModuleOp(*step.module).getContext();
  if (step.options.shard.gradAccum < 2)
    return {};
  GradSync asked = step.options.shard.gradSync;
  FailureOr<ChoiceReport> other = planOtherwise(
      step.options, asked == GradSync::Last ? GradSync::Each : GradSync::Last, context);
  if (failed(other))
    return {};
  ChoiceReport own = measureChoice(
      *step.module, asked == GradSync::Last ? "--grad-sync=last" : "--grad-sync=each", true);
  if (asked == GradSync::Auto && other->arenaBytes == own.arenaBytes &&
      other->reducedBytes == own.reducedBytes) {
    // The plan of --grad-sync=auto is equal to `other`, so auto has chosen the value of `other`.
    own.option = other->option;
    other = planOtherwise(step.options, GradSync::Each, context);
    if (failed(other))
      return {};
  }
  SmallVector<ChoiceReport> choices{own, *other};
  llvm::sort(choices,
             [](const ChoiceReport &a, const ChoiceReport &b) { return a.option < b.option; });
  return choices;
}

/// If requested, prints the explanation of the plan and writes its report.
static LogicalResult explainStep(const StepCompilation &step) {
  const DriverOptions &driver = step.options.driver;
  if (driver.explain == ExplainKind::Dtypes)
    writeDtypes(step.dtypes, /*all=*/true, llvm::outs());
  else if (driver.explain != ExplainKind::None) {
    ModuleOp planned = *step.module;
    FailureOr<Cluster> cluster = loadCluster(planned.getContext(), chooseCluster(step.options));
    if (failed(cluster))
      return failure();
    explain(planned, llvm::outs(), driver.explain == ExplainKind::Json, compareAccumulation(step),
            step.dtypes, measureKernels(planned, step.kernels, *cluster));
  }
  return driver.report.empty() ? success() : writePage(step);
}

/// If requested, compiles the kernels and writes the artifact. The compilation of the kernels takes
/// the most time. If there is a memory limit, the plan is therefore explained and the size of the
/// arena is checked before this compilation.
static int finish(StepCompilation &step) {
  int64_t limit = step.options.plan.memoryLimit;
  bool writes = !step.options.driver.output.empty(),
       compiles = writes && !step.options.driver.noCode;
  step.code = compiles && !limit;
  if (failed(runPhases(step, "codegen", "codegen")) || failed(explainStep(step)))
    return 1;
  if ((limit || writes) && failed(checkMemoryLimit(*step.module, limit)))
    return 1;
  if (compiles && !step.code) {
    step.code = true;
    if (failed(runPhases(step, "codegen", "codegen")))
      return 1;
  }
  return !writes || succeeded(runPhases(step, "package", "package")) ? 0 : 1;
}

/// Compiles for one mesh. Sets `compiled` to the options that were used. Returns the exit code.
static int compile(const CommandLine &line, StepOptions &compiled) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // Diagnostics do not print ops, because users know their model but not the IR.
  context.printOpOnDiagnostic(false);
  const DriverOptions &driver = line.options.driver;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
    printDiagnostic(diag, line.file, driver.remarks);
    return success();
  });
  StepCompilation step{parseModel(driver.input, &context, getParseLimits(driver)), line.options};
  if (!step.module || failed(checkEarly(*step.module, step.options)))
    return badUsage;
  StringRef last = driver.compileTo;
  if (!line.compileFrom.empty()) {
    if (failed(runPhases(step, line.compileFrom, "fuse")) || failed(planFused(step)) ||
        failed(checkLinks(*step.module, step.options)))
      return badUsage;
    return finish(step);
  }
  if (failed(runPhases(step, "import", "import")) ||
      (!driver.config.empty() && failed(line.file.checkBatch(*step.module, step.options))))
    return badUsage;
  if (last.empty()
          ? failed(planWithinLimit(step))
          : last != "import" && failed(runPhases(step, "shard", last == "codegen" ? "plan" : last)))
    return badUsage;
  if (failed(checkLinks(*step.module, step.options)))
    return badUsage;
  if (driver.emit != EmitKind::None) {
    int64_t limit = step.options.plan.memoryLimit;
    bool fits = !limit || succeeded(checkMemoryLimit(*step.module, limit));
    return fits && succeeded(printGpuKernels(*step.module, step.options.codegen, driver.emit,
                                             llvm::outs()))
               ? 0
               : 1;
  }
  if (last == "codegen") {
    PassManager pm(&context, ModuleOp::getOperationName());
    buildCodegenPipeline(pm, step.options);
    if (failed(pm.run(*step.module)))
      return 1;
  }
  if (!last.empty()) // the output is IR
    return driver.output.empty() || succeeded(writeModule(*step.module, driver.output)) ? 0 : 1;
  if (!driver.output.empty() && failed(verifyRanks(*step.module)))
    return badUsage;
  compiled = step.options;
  return finish(step);
}

/// Compiles for the mesh of --mesh, and for the meshes of --also-mesh. Returns the exit code.
static int compileAll(const CommandLine &line) {
  StepOptions compiled, ignored;
  if (int code = compile(line, compiled); code || line.options.driver.alsoMesh.empty())
    return code;
  return compileAlso(line, compiled,
                     [&](const CommandLine &also) { return compile(also, ignored); });
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-compile");
  registerTargets();
  if (printedHelp(ArrayRef(argv, argc)))
    return 0;
  setVersion("fsdp-compile");
  std::optional<CommandLine> line = readCommandLine(argc, argv);
  if (!line)
    return badUsage;
  if (line->listsOptions)
    printOptionsPage(llvm::outs());
  if (line->listsKeys) {
    printConfigKeys(llvm::outs());
    for (const std::string &target : getConfigTargets())
      if (!llvm::is_contained({"batch", "ranks", "total-batch"}, target) && !findOption(target))
        llvm::errs() << "fsdp-compile: no such option: --" << target << "\n";
  }
  if (line->listsKeys || line->listsOptions)
    return 0;
  const DriverOptions &driver = line->options.driver;
  if (driver.search > 0)
    return answerSearch(*line);
  return driver.whatIf.empty() ? compileAll(*line)
                               : answerWhatIf(std::vector<std::string>(argv, argv + argc),
                                              driver.input, driver.whatIf);
}
