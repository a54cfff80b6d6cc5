//===- AlsoMesh.cpp - Artifacts for further meshes --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Split "shard=3,replicate=2,shard=2,tensor=2" into meshes. The axes of a mesh are in the order
//    replicate, shard, context, tensor. Any other axis begins the next mesh.
// 2. Derive the names of the artifacts: gpt.shard3.fsdp and gpt.replicate2-shard2.fsdp.
// 3. Set the number of micro-batches of each rank. If each of the R ranks of --mesh has A
//    micro-batches, each of the r ranks of another mesh gets R A / r micro-batches. If R A / r is
//    not a whole number, print a warning and use the nearest whole number above 0.
//
//===----------------------------------------------------------------------===//

#include "AlsoMesh.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Tools/ToolMain.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fsdp;

std::vector<std::string> fsdp::splitMeshes(StringRef text, std::string &problem) {
  std::vector<std::string> meshes;
  std::string mesh;
  int last = 0; // place of the last axis of `mesh` in the order of axes, from 1
  auto finish = [&] {
    if (problem.empty() && last == 1)
      problem =
          "expected the axis shard=S or tensor=T at the end of each mesh, found '" + mesh + "'";
    if (!mesh.empty())
      meshes.push_back(std::move(mesh));
    mesh.clear();
  };
  SmallVector<StringRef> axes;
  text.split(axes, ',', -1, /*KeepEmpty=*/!text.empty());
  for (StringRef axis : axes) {
    auto [name, size] = axis.split('=');
    int place = llvm::StringSwitch<int>(name)
                    .Case("replicate", 1)
                    .Case("shard", 2)
                    .Case(contextAxis, 3)
                    .Case(tensorAxis, 4)
                    .Default(0);
    if (!place || size.empty())
      problem =
          "expected meshes such as shard=3, replicate=2,shard=2 or shard=2,tensor=2, found '" +
          axis.str() + "'";
    if (place <= last)
      finish();
    mesh += (mesh.empty() ? "" : ",") + axis.str();
    last = place;
  }
  finish();
  return meshes;
}

std::string fsdp::getPathFor(StringRef output, StringRef mesh) {
  std::string suffix;
  for (char c : mesh)
    if (c != '=')
      suffix += c == ',' ? '-' : c;
  StringRef extension = llvm::sys::path::extension(output);
  return (output.drop_back(extension.size()) + "." + suffix + extension).str();
}

std::optional<std::string> fsdp::checkAlsoMesh(const StepOptions &options) {
  const DriverOptions &driver = options.driver;
  if (driver.alsoMesh.empty())
    return std::nullopt;
  std::string problem, prefix = "--also-mesh=" + driver.alsoMesh + ": ";
  std::vector<std::string> meshes = splitMeshes(driver.alsoMesh, problem);
  if (!problem.empty())
    return prefix + problem;
  if (driver.input == "-")
    return prefix + "the model is read for each mesh: give a file, not stdin";
  if (driver.output == "-")
    return prefix + "each mesh has its own file: give -o OUT.fsdp";
  llvm::StringSet<> seen;
  seen.insert(options.shard.mesh);
  for (const std::string &mesh : meshes) {
    if (!seen.insert(mesh).second)
      return prefix + "expected each mesh once, and not that of --mesh, found '" + mesh + "' again";
    if (std::optional<std::string> why =
            whyNotWritable(getPathFor(driver.output, mesh), driver.input))
      return prefix + *why;
  }
  return std::nullopt;
}

/// Performs step 3 of the list above: returns the number of micro-batches of a rank of `mesh`, and
/// prints the warning.
static int64_t chooseAccumulation(const StepOptions &compiled, StringRef mesh) {
  int64_t all = countDataRanks(compiled.shard.mesh) * compiled.shard.gradAccum,
          ranks = countDataRanks(mesh), each = std::max<int64_t>((all + ranks / 2) / ranks, 1);
  if (each * ranks != all)
    llvm::errs() << "warning: --also-mesh=" << mesh << ": a step has " << each * ranks
                 << " micro-batches over all ranks instead of " << all << ", because " << ranks
                 << " ranks cannot share " << all << " equally\n"
                 << "note: a --grad-accum for which both meshes have the same number keeps the "
                    "samples of a step\n";
  return each;
}

int fsdp::compileAlso(const CommandLine &line, const StepOptions &compiled,
                      llvm::function_ref<int(const CommandLine &)> compile) {
  std::string problem;
  for (const std::string &mesh : splitMeshes(line.options.driver.alsoMesh, problem)) {
    CommandLine own = line;
    own.options.shard.mesh = mesh;
    own.options.shard.gradAccum = chooseAccumulation(compiled, mesh);
    DriverOptions &driver = own.options.driver;
    driver.output = getPathFor(driver.output, mesh);
    driver.alsoMesh.clear();
    // Do not read the file of --config again, because the batch size in it applies only to --mesh.
    driver.config.clear();
    driver.explain = ExplainKind::None;
    driver.report.clear();
    driver.dumpPhasesTo.clear();
    if (int code = compile(own)) {
      llvm::errs() << "note: this error is of --also-mesh=" << mesh << ", for which there is no '"
                   << driver.output << "'\n";
      return code;
    }
  }
  return 0;
}
