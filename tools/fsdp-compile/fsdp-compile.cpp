//===- fsdp-compile.cpp - Compile a training step ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "FileOptions.h"
#include "WhatIf.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/Explain.h"
#include "fsdp/Analysis/MemoryLimit.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/Analysis/Report.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/Package/Package.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include <csignal>

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int badUsage = 2;

/// "file:line:column", or nothing for a location without one.
static void printLocation(Location loc, llvm::raw_ostream &os) {
  if (auto file = dyn_cast<FileLineColLoc>(loc); file && file.getLine() == 0) // the module
    os << file.getFilename().getValue() << ": ";
  else if (file)
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
  else if (auto named = dyn_cast<NameLoc>(loc))
    printLocation(named.getChildLoc(), os);
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    printLocation(fused.getLocations().front(), os);
  else if (auto call = dyn_cast<CallSiteLoc>(loc))
    printLocation(call.getCallee(), os);
}

static void printDiagnostic(Diagnostic &diag, const FileOptions &file, bool remarks) {
  if (diag.getSeverity() == DiagnosticSeverity::Remark && !remarks)
    return;
  static constexpr StringLiteral names[] = {"note", "warning", "error", "remark"};
  printLocation(diag.getLocation(), llvm::errs());
  llvm::errs() << names[static_cast<unsigned>(diag.getSeverity())] << ": " << diag << "\n";
  file.noteOrigin(diag.str());
  for (Diagnostic &note : diag.getNotes()) {
    printLocation(note.getLocation(), llvm::errs());
    llvm::errs() << "note: " << note << "\n";
  }
}

static int usageError(const Twine &message, const FileOptions &file = {}) {
  llvm::errs() << "fsdp-compile: " << message << "\n";
  file.noteOrigin(message.str());
  return badUsage;
}

/// Makes a file of what `write` prints; without success there is none.
static LogicalResult writeFile(MLIRContext *context, StringRef path,
                               llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code ec;
  llvm::ToolOutputFile out(path, ec, llvm::sys::fs::OF_None);
  if (!ec) {
    write(out.os());
    out.os().flush();
    ec = out.os().error();
    out.os().clear_error();
  }
  if (ec)
    return emitError(UnknownLoc::get(context)) << "cannot write '" << path << "': " << ec.message();
  out.keep();
  return success();
}

/// Writes `module` to the file that -o names.
static LogicalResult writeModule(ModuleOp module, StringRef path) {
  return writeFile(module.getContext(), path, [&](llvm::raw_ostream &os) { module.print(os); });
}

/// Writes the page of --report.
static LogicalResult writePage(ModuleOp planned, const CompileOptions &options,
                               ArrayRef<DtypeRow> dtypes, StringRef path) {
  FailureOr<Cluster> cluster = loadCluster(planned.getContext(), options.plan.cluster);
  if (failed(cluster))
    return failure();
  std::string title = "Training step of " + llvm::sys::path::filename(options.source).str();
  return writeFile(planned.getContext(), path, [&](llvm::raw_ostream &os) {
    writeReport(planned, *cluster, dtypes, title, os);
  });
}

/// The model planned once more, with gradients that cross ranks at another time.
static FailureOr<ChoiceReport> planOtherwise(StringRef input, CompileOptions options,
                                             StringRef sync, MLIRContext &context) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); }); // said before
  OwningOpRef<ModuleOp> module = input == "-" ? nullptr : parseModel(input, &context);
  options.shard.gradSync = sync.str();
  options.timing = false;
  options.dumpDirectory.clear();
  if (!module || failed(runPhases(*module, options, "")) ||
      failed(compileKernels(*module, options, /*code=*/false)))
    return failure();
  return measureChoice(*module, ("--grad-sync=" + sync).str(), /*isTaken=*/false);
}

/// Both ways to accumulate over micro-batches, the one of `planned` among them.
static SmallVector<ChoiceReport> compareAccumulation(ModuleOp planned, StringRef input,
                                                     const CompileOptions &options,
                                                     MLIRContext &context) {
  if (options.shard.gradAccum < 2)
    return {};
  std::string asked = options.shard.gradSync;
  FailureOr<ChoiceReport> other =
      planOtherwise(input, options, asked == "last" ? "each" : "last", context);
  if (failed(other))
    return {};
  ChoiceReport own =
      measureChoice(planned, asked == "last" ? "--grad-sync=last" : "--grad-sync=each", true);
  if (asked == "auto" && other->arenaBytes == own.arenaBytes &&
      other->reducedBytes == own.reducedBytes) {
    own.option = other->option; // the other is what was chosen
    other = planOtherwise(input, options, "each", context);
    if (failed(other))
      return {};
  }
  SmallVector<ChoiceReport> choices{own, *other};
  llvm::sort(choices,
             [](const ChoiceReport &a, const ChoiceReport &b) { return a.option < b.option; });
  return choices;
}

/// From the plan to the artifact, if there is to be one. What is above the limit is found before
/// the kernels are compiled, the long part, and explained all the same.
static int finish(ModuleOp planned, const CompileOptions &options, StringRef outFile, bool code,
                  llvm::function_ref<LogicalResult()> explain) {
  bool limited = options.plan.memoryLimit > 0, writes = !outFile.empty();
  FailureOr<Kernels> image = compileKernels(planned, options, /*code=*/writes && code && !limited);
  if (failed(image))
    return 1;
  if (failed(explain()))
    return 1;
  if ((limited || writes) && failed(checkMemoryLimit(planned, options.plan.memoryLimit)))
    return 1;
  if (limited && writes && code && failed(image = compileKernels(planned, options)))
    return 1;
  return !writes || succeeded(writeArtifact(planned, *image, options, outFile)) ? 0 : 1;
}

/// What a choice or a schedule under a limit cannot know is the workspace of the kernels, and what
/// packing the other programs beside the step costs: planned again, with as much less as was too
/// much, as long as that helps.
static LogicalResult runPhasesWithin(OwningOpRef<ModuleOp> &module, CompileOptions &options,
                                     StringRef last, SmallVectorImpl<DtypeRow> *dtypes) {
  bool chooses = options.plan.checkpointing == "auto" ||
                 (options.plan.overlap && options.plan.memoryLimit > 0);
  if (!chooses || !last.empty())
    return runPhases(*module, options, last, dtypes);
  static constexpr unsigned mostTries = 5;
  const int64_t asked = options.plan.memoryLimit;
  llvm::scope_exit restore([&] { options.plan.memoryLimit = asked; });
  OwningOpRef<ModuleOp> best;
  int64_t least = std::numeric_limits<int64_t>::max(); // its peak
  for (unsigned attempt = 1; attempt <= mostTries && options.plan.memoryLimit > 0; ++attempt) {
    if (dtypes)
      dtypes->clear();
    OwningOpRef<ModuleOp> planned = module->clone();
    if (failed(runPhases(*planned, options, last, dtypes)))
      return failure();
    OwningOpRef<ModuleOp> measured = planned->clone();
    if (failed(compileKernels(*measured, options, /*code=*/false)))
      return failure();
    MemoryReport memory = measureMemory(*measured);
    int64_t peak = memory.peak, left = asked - memory[Category::workspace];
    if (peak >= least)
      break;
    least = peak;
    best = std::move(planned);
    if (peak <= asked)
      break;
    // The workspace begins on a page.
    options.plan.memoryLimit =
        std::min<int64_t>(llvm::alignDown(std::max<int64_t>(left, 0), pageAlignment),
                          options.plan.memoryLimit - (peak - asked));
  }
  module = std::move(best);
  return success();
}

static int compile(const CommandLine &line, const FileOptions &file) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // users know their model, not our IR
  bool remarks = line.remarks;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
    printDiagnostic(diag, file, remarks);
    return success();
  });
  OwningOpRef<ModuleOp> module = parseModel(line.input, &context);
  if (!module)
    return badUsage;
  CompileOptions options = fill(line);
  // The linker, which runs in this process, resets the options of the command line.
  const std::string input = line.input, outFile = line.outFile, compileTo = line.compileTo,
                    report = line.report, emit = line.emit;
  const bool explains = line.explain.getNumOccurrences(), json = line.explain == "json",
             onlyDtypes = line.explain == "dtypes", noCode = line.noCode;
  if (failed(CpuTarget::get(options.targetCpu, module->getLoc())))
    return badUsage;
  if (failed(loadCluster(&context, options.plan.cluster))) // before anything is planned
    return badUsage;
  if (failed(parseMeshSpec(options.shard.mesh, [&] {
        return emitError(module->getLoc());
      }))) // also where no phase reads it
    return badUsage;
  if (!line.config.empty())
    options.afterImport = [&, given = line.accum.getNumOccurrences() > 0](ModuleOp imported) {
      return file.checkBatch(imported, options, given);
    };
  SmallVector<DtypeRow> dtypes;
  if (failed(runPhasesWithin(module, options, compileTo,
                             explains || !report.empty() ? &dtypes : nullptr)))
    return badUsage;
  if (!emit.empty())
    return succeeded(printGpuKernels(*module, options, emit, llvm::outs())) ? 0 : 1;
  if (!compileTo.empty() && compileTo != "codegen") // IR
    return outFile.empty() || succeeded(writeModule(*module, outFile)) ? 0 : 1;
  if (compileTo == "codegen")
    return failed(lowerKernels(*module, options)) || failed(writeModule(*module, outFile)) ? 1 : 0;
  if (!outFile.empty() && failed(verifyRanks(*module)))
    return badUsage;
  return finish(*module, options, outFile, /*code=*/!noCode, [&] {
    if (explains)
      onlyDtypes ? writeDtypes(dtypes, /*all=*/true, llvm::outs())
                 : explain(*module, llvm::outs(), json,
                           compareAccumulation(*module, input, options, context), dtypes);
    return report.empty() ? success() : writePage(*module, options, dtypes, report);
  });
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-compile");
  std::signal(SIGXFSZ, SIG_IGN); // a file-size limit is an error of the write
  CommandLine line;
  setVersion("fsdp-compile");
  cl::HideUnrelatedOptions(
      {&line.model, &line.sharding, &line.precision, &line.training, &line.output});
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errorStream)) {
    llvm::errs() << errors;
    return badUsage;
  }
  if (std::optional<std::string> option = findRepeated(ArrayRef(argv + 1, argc - 1)))
    return usageError(*option);
  for (StringRef argument : ArrayRef(argv + 1, argc - 1))
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1 &&
        argument != "--explain=")
      return usageError(argument + ": expected a value");
  if (line.configKeys) {
    printConfigKeys(llvm::outs());
    for (const std::string &target : getConfigTargets())
      if (!llvm::is_contained({"batch", "ranks", "total-batch"}, target) &&
          !cl::getRegisteredOptions().count(target))
        llvm::errs() << "fsdp-compile: no such option: --" << target << "\n";
    return 0;
  }
  FileOptions file;
  if (!line.config.empty() && !file.read(line))
    return badUsage;
  std::optional<std::string> problem = checkUsage(line);
  if (!problem)
    problem = checkUnread(line, [&](StringRef option) { return file.gives(option); });
  if (problem)
    return usageError(*problem, file);
  if (!line.whatIf.empty())
    return answerWhatIf(std::vector<std::string>(argv, argv + argc), line.input,
                        std::vector<std::string>(line.whatIf.begin(), line.whatIf.end()));
  return compile(line, file);
}
