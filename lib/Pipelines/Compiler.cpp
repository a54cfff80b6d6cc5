//===- Compiler.cpp - From a model to an artifact ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/Analysis/PlanMeasures.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/Passes.h"
#include "fsdp/Differentiate/Passes.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Package/Package.h"
#include "fsdp/Plan/Passes.h"
#include "fsdp/Shard/Passes.h"
#include "fsdp/Update/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

/// Runs the passes of a phase and verifies the ops of their result, unless the plan is only
/// measured. Verification after each pass would take more than half of the time of a plan. Passes
/// that read foreign ops, fsdp-opt and builds with AddressSanitizer verify after each pass.
static LogicalResult runPasses(PassManager &pm, const StepCompilation &step,
                               bool areForeign = false) {
  pm.enableVerifier((LLVM_ADDRESS_SANITIZER_BUILD || areForeign) && !step.onlyMeasures);
  return success(succeeded(pm.run(*step.module)) &&
                 (step.onlyMeasures || succeeded(verify(*step.module))));
}

template <void (*build)(OpPassManager &, const StepOptions &)>
static LogicalResult runPipeline(StepCompilation &step) {
  PassManager pm(step.module->getContext(), ModuleOp::getOperationName());
  build(pm, step.options);
  return runPasses(pm, step, build == buildImportPipeline);
}

/// Compiles the kernels, unless their workspace is known. Adds the workspace to the plan, and
/// verifies the plan again.
static LogicalResult compileKernels(StepCompilation &step) {
  PassManager pm(step.module->getContext(), ModuleOp::getOperationName());
  auto kernels = std::make_shared<CompiledKernels>();
  if (!step.hasScratch)
    pm.addPass(createCompileKernelsPass(step.options, step.code, kernels));
  pm.addPass(configure(createAddWorkspacePass(), step.options));
  pm.addPass(createVerifyPlannedPass());
  if (failed(runPasses(pm, step)))
    return failure();
  step.kernels = std::move(*kernels);
  return success();
}

/// Turns functions into programs over arenas.
static LogicalResult planStep(StepCompilation &step) {
  return step.hasBuffers ? runPipeline<buildArenaPipeline>(step)
                         : runPipeline<buildPlanPipeline>(step);
}

/// Writes the artifact to the file of -o. On failure, leaves no file.
static LogicalResult packageStep(StepCompilation &step) {
  return packArtifact(*step.module, step.kernels, step.options, step.options.driver.output);
}

/// Erases the program `reference`, and marks the module as one without this program.
static void eraseReference(ModuleOp module) {
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    auto name = function->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (name && name.getValue() == "reference")
      function.erase();
  }
  module->setAttr(noReferenceAttr, UnitAttr::get(module.getContext()));
}

ArrayRef<Phase> fsdp::getPhases() {
  static const Phase phases[] = {
#define FSDP_PHASE(mnemonic, sentence, run) {#mnemonic, sentence, run},
#include "Phases.def"
  };
  return phases;
}

/// If enabled, prints how many milliseconds a phase took when the phase ends.
namespace {
class PhaseTimer {
public:
  PhaseTimer(bool enabled, StringRef name) : enabled(enabled), name(name) {}
  ~PhaseTimer() {
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    if (enabled)
      llvm::errs() << llvm::format("%10.1f ms  ", spent.count()) << name << "\n";
  }

private:
  bool enabled;
  StringRef name;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};
} // namespace

/// Writes the module to a file such as `03.differentiate.mlir`.
static LogicalResult dump(ModuleOp module, StringRef directory, unsigned number,
                          StringRef mnemonic) {
  if (std::error_code ec = llvm::sys::fs::create_directories(directory))
    return emitError(module.getLoc()) << "cannot create '" << directory << "': " << ec.message();
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path,
                          (number < 10 ? "0" : "") + Twine(number) + "." + mnemonic + ".mlir");
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return writeFile(path, ArrayRef(text.data(), text.size()), module.getLoc());
}

LogicalResult fsdp::runPhases(StepCompilation &step, StringRef first, StringRef last) {
  const DriverOptions &driver = step.options.driver;
  bool runs = false;
  for (auto [index, phase] : llvm::enumerate(getPhases())) {
    runs |= phase.mnemonic == first;
    if (!runs)
      continue;
    bool measures = phase.mnemonic == "codegen" && !step.code;
    PhaseTimer timer(driver.timing, measures ? "codegen (no code)" : phase.mnemonic);
    if (failed(phase.run(step)))
      return failure();
    if (!driver.dumpPhasesTo.empty() && phase.mnemonic != "package" &&
        failed(dump(*step.module, driver.dumpPhasesTo, index + 1, phase.mnemonic)))
      return failure();
    if (phase.mnemonic == "shard" && step.onlyMeasures)
      eraseReference(*step.module);
    if (phase.mnemonic == "update" && !step.onlyMeasures)
      step.dtypes = measureDtypes(*step.module, step.options.codegen.roundsToTF32());
    if (phase.mnemonic == last)
      break;
  }
  return success();
}

namespace {
/// Keeps diagnostics until they are requested. The compiler may plan a step several times, but
/// should print only the diagnostics of the plan that it chooses. Drops repeated diagnostics,
/// because a pass may try several plans.
class DiagnosticStore {
public:
  explicit DiagnosticStore(MLIRContext *context)
      : engine(context->getDiagEngine()), handler(context, [this](Diagnostic &diag) {
          if (isPassing)
            return failure(); // the next handler then gets the diagnostic
          std::string text;
          llvm::raw_string_ostream(text) << diag.getLocation() << diag;
          if (said.insert(text).second)
            kept.push_back(std::move(diag));
          return success();
        }) {}
  ~DiagnosticStore() { emit(take()); }

  /// Returns the diagnostics that were emitted since the last call of take().
  std::vector<Diagnostic> take() {
    said.clear();
    return std::exchange(kept, {});
  }
  void emit(std::vector<Diagnostic> diagnostics) {
    isPassing = true;
    for (Diagnostic &diag : diagnostics)
      engine.emit(std::move(diag));
    isPassing = false;
  }

private:
  std::vector<Diagnostic> kept;
  std::set<std::string> said;
  bool isPassing = false;
  DiagnosticEngine &engine;
  ScopedDiagnosticHandler handler;
};
} // namespace

static LogicalResult shardAndPlan(StepCompilation &step) {
  return success(succeeded(runPhases(step, "shard", "fuse")) && succeeded(planFused(step)));
}

static bool hasMasters(ModuleOp module) {
  return module
      .walk([](StateSlotOp state) {
        return state.getRole() == StateRole::master ? WalkResult::interrupt()
                                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns true if the arena, with the workspace of kernels, fits --memory-limit, or if it has no
/// masters, so that --param-storage has no effect.
static FailureOr<bool> isFinal(const StepCompilation &step) {
  if (!hasMasters(*step.module))
    return true;
  StepCompilation measured{ModuleOp(*step.module).clone(), step.options, /*code=*/false};
  if (failed(runPhases(measured, "codegen", "codegen")))
    return failure();
  return measureMemory(*measured.module).peak <= step.options.plan.memoryLimit;
}

LogicalResult fsdp::planWithinLimit(StepCompilation &step) {
  ParamStorage &storage = step.options.shard.paramStorage;
  bool mayBeMaster = storage == ParamStorage::Auto && step.options.plan.memoryLimit > 0 &&
                     getTargetInfo(step.options.codegen)->getParamStorage() != ParamStorage::Master;
  if (!mayBeMaster)
    return shardAndPlan(step);
  OwningOpRef<ModuleOp> imported = step.module->clone();
  DiagnosticStore store(step.module->getContext());
  if (failed(shardAndPlan(step)))
    return failure();
  std::vector<Diagnostic> diagnostics = store.take();
  FailureOr<bool> final = isFinal(step);
  store.take(); // the phase codegen emits these diagnostics again
  if (failed(final))
    return failure();
  if (*final) {
    store.emit(std::move(diagnostics));
    return success();
  }
  storage = ParamStorage::Master;
  step.module = std::move(imported);
  emitRemark(step.module->getLoc())
      << "param-storage 'auto' is 'master': with 'both', the arena exceeds --memory-limit";
  return shardAndPlan(step);
}

LogicalResult fsdp::assignBuffers(StepCompilation &step) {
  PhaseTimer timer(step.options.driver.timing, "plan (buffers)");
  step.hasBuffers = true;
  if (failed(runPipeline<buildBufferPipeline>(step)))
    return failure();
  if (!step.onlyMeasures)
    return success();
  // The second part of the phase plan adds no kernel, so that all its runs share the workspace.
  PassManager pm(step.module->getContext(), ModuleOp::getOperationName());
  pm.addPass(createCompileKernelsPass(step.options, /*code=*/false, /*result=*/nullptr));
  step.hasScratch = true;
  return runPasses(pm, step);
}

LogicalResult fsdp::planFused(StepCompilation &step) {
  Bytes &limit = step.options.plan.memoryLimit;
  bool chooses =
      step.options.plan.checkpointing == "auto" || (step.options.plan.overlap && limit > 0);
  if (!chooses)
    return runPhases(step, "plan", step.onlyMeasures ? "codegen" : "plan");
  static constexpr unsigned mostTries = 5;
  const int64_t asked = limit;
  llvm::scope_exit restore([&] { limit = asked; });
  DiagnosticStore store(step.module->getContext());
  std::vector<Diagnostic> ofBest;
  // All tries share the first part of the phase, unless it reads the limit.
  if (step.options.plan.checkpointing != "auto" && !step.hasBuffers && failed(assignBuffers(step)))
    return failure();
  std::vector<Diagnostic> shared = store.take();
  OwningOpRef<ModuleOp> first = std::move(step.module), best;
  int64_t least = std::numeric_limits<int64_t>::max(); // arena size of `best` in bytes
  for (unsigned attempt = 1; attempt <= mostTries && limit > 0; ++attempt) {
    step.module = first->clone();
    if (failed(runPhases(step, "plan", "plan")))
      return failure();
    std::vector<Diagnostic> diagnostics = store.take();
    StepCompilation measured{{}, step.options, /*code=*/false, step.onlyMeasures};
    measured.hasScratch = step.hasScratch;
    measured.module = step.onlyMeasures ? std::move(step.module) : step.module->clone();
    if (failed(runPhases(measured, "codegen", "codegen")))
      return failure();
    MemoryReport memory = measureMemory(*measured.module);
    int64_t peak = memory.peak, left = asked - memory[Category::workspace];
    store.take(); // these diagnostics are emitted again when code is generated for the chosen plan
    if (peak >= least)
      break;
    bool isLast = peak <= asked || (step.cannotFit && step.cannotFit(*measured.module));
    least = peak;
    best = std::move(step.onlyMeasures ? measured.module : step.module);
    ofBest = std::move(diagnostics);
    if (isLast)
      break;
    // The workspace begins at a page boundary, so round the limit down to a page boundary.
    limit = std::min<int64_t>(llvm::alignDown(std::max<int64_t>(left, 0), pageAlignment),
                              limit - (peak - asked));
  }
  store.emit(std::move(shared));
  store.emit(std::move(ofBest));
  step.module = std::move(best);
  step.hasBuffers = step.hasScratch = false;
  return success();
}
