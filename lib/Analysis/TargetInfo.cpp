//===- TargetInfo.cpp - Properties of a target for all stages ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Registered {
  std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &);
  llvm::StringRef names;
};
} // namespace

static llvm::SmallVector<Registered> &getTargets() {
  static llvm::SmallVector<Registered> targets;
  return targets;
}

void fsdp::registerTarget(std::unique_ptr<TargetInfo> (*create)(const CodegenOptions &),
                          llvm::StringRef names) {
  if (llvm::none_of(getTargets(),
                    [&](const Registered &target) { return target.create == create; }))
    getTargets().push_back({create, names});
}

std::shared_ptr<const TargetInfo> fsdp::getTargetInfo(const CodegenOptions &options) {
  for (const Registered &target : getTargets())
    if (std::unique_ptr<TargetInfo> info = target.create(options))
      return info;
  return nullptr;
}

std::optional<std::string> fsdp::findUnknownTarget(const StepOptions &options) {
  if (getTargetInfo(options.codegen))
    return std::nullopt;
  std::string names;
  llvm::interleave(
      getTargets(), [&](const Registered &target) { names += target.names; },
      [&] { names += ", "; });
  return "--target=" + options.codegen.target + ": expected " + names;
}

std::string fsdp::chooseCluster(const StepOptions &options) {
  return options.plan.cluster.empty() ? getTargetInfo(options.codegen)->getClusterName().str()
                                      : options.plan.cluster;
}
