//===- ModelInput.cpp - Reading a model, and its diagnostics -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ModelInput.h"
#include "AlsoMesh.h"
#include "fsdp/Analysis/Cost.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Shard/MeshSpec.h"
#include "fsdpcommon/ShortText.h"

using namespace mlir;
using namespace mlir::fsdp;
using fsdpcommon::printableMessage;

/// Prints a location as "file:line:column: ". Prints nothing if the location has no file.
static void printLocation(Location loc, llvm::raw_ostream &os) {
  if (auto file = dyn_cast<FileLineColLoc>(loc);
      // The location of a module has line 0.
      file && file.getLine() == 0)
    os << printableMessage(file.getFilename().getValue()) << ": ";
  else if (file)
    os << printableMessage(file.getFilename().getValue()) << ":" << file.getLine() << ":"
       << file.getColumn() << ": ";
  else if (auto named = dyn_cast<NameLoc>(loc))
    printLocation(named.getChildLoc(), os);
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    printLocation(fused.getLocations().front(), os);
  else if (auto call = dyn_cast<CallSiteLoc>(loc))
    printLocation(call.getCallee(), os);
}

void fsdp::printDiagnostic(Diagnostic &diag, const FileOptions &file, bool remarks) {
  if (diag.getSeverity() == DiagnosticSeverity::Remark && !remarks)
    return;
  static constexpr StringLiteral names[] = {"note", "warning", "error", "remark"};
  printLocation(diag.getLocation(), llvm::errs());
  llvm::errs() << names[static_cast<unsigned>(diag.getSeverity())] << ": "
               << printableMessage(diag.str()) << "\n";
  file.noteOrigin(diag.str());
  for (Diagnostic &note : diag.getNotes()) {
    printLocation(note.getLocation(), llvm::errs());
    llvm::errs() << "note: " << printableMessage(note.str()) << "\n";
  }
}

ParseLimits fsdp::getParseLimits(const DriverOptions &driver) {
  ParseLimits limits;
  limits.bytes = driver.maxInputBytes;
  limits.nesting = driver.maxNesting;
  limits.ops = driver.maxOps;
  limits.areOptions = true;
  return limits;
}

LogicalResult fsdp::checkLinks(ModuleOp planned, const StepOptions &options) {
  auto meshes = planned.getOps<MeshOp>();
  if (meshes.empty())
    return success();
  MeshOp mesh = *meshes.begin();
  bool isScheduled = !planned.getOps<ProgramOp>().empty() &&
                     (options.plan.overlap || options.plan.checkpointing == "auto" ||
                      !options.driver.report.empty());
  bool choosesRing =
      mesh.getAxisSize(contextAxis) > 1 && options.shard.contextAttention == ContextAttention::Auto;
  if (!isScheduled && !choosesRing)
    return success(); // no time of a collective is estimated
  FailureOr<Cluster> cluster = loadCluster(planned.getContext(), chooseCluster(options));
  if (failed(cluster))
    return failure();
  std::optional<std::string> reason = whyUnfit(planned, mesh, *cluster);
  if (reason && !options.plan.cluster.empty())
    return emitError(UnknownLoc::get(planned.getContext()))
           << options.plan.cluster << ": " << *reason;
  if (reason) {
    InFlightDiagnostic diag = emitWarning(planned.getLoc());
    diag << "times are estimated as if the links of the default cluster '" << cluster->name
         << "' joined " << mesh.getNumRanks() << " ranks instead of " << cluster->ranks();
    diag.attachNote(UnknownLoc::get(planned.getContext()))
        << "describe the cluster with --cluster=FILE.json as in examples/clusters";
  }
  return success();
}

LogicalResult fsdp::checkEarly(ModuleOp module, const StepOptions &options) {
  if (failed(CpuTarget::get(options.codegen.targetCpu, module.getLoc())))
    return failure();
  FailureOr<Cluster> cluster = loadCluster(module.getContext(), options.plan.cluster);
  if (failed(cluster))
    return failure();
  if (!options.plan.cluster.empty() && options.plan.offload.any() &&
      cluster->hostBytesPerSecond == 0)
    emitWarning(module.getLoc())
        << "cluster '" << cluster->name
        << "' does not give \"host_bytes_per_second\" of its device, so copies between device and "
           "host are estimated at the speed of memory";
  std::string problem;
  std::vector<std::string> meshes = splitMeshes(options.driver.alsoMesh, problem);
  meshes.push_back(options.shard.mesh);
  for (const std::string &mesh : meshes)
    if (failed(parseMeshSpec(mesh, [&] { return emitError(module.getLoc()); })))
      return failure();
  return success();
}
