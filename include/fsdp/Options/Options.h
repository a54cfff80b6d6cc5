//===- Options.h - Options of a training step -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Defines one structure of options per stage, and the structure StepOptions, which contains all
// these structures. Each row of Options.def defines one member. OptionTable.h has functions that
// access options by name.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_OPTIONS_H
#define FSDP_OPTIONS_OPTIONS_H

#include "fsdp/Options/OptionTypes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {

#define MEMBER(type, member, name, init, ...) type member = init;

/// Options of Import, which converts the MLIR of other tools to the model contract.
struct ImportOptions {
#define FSDP_IMPORT_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Shard, which converts the model to a sharded forward.
struct ShardOptions {
#define FSDP_SHARD_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Differentiate, which adds the backward to the forward.
struct DifferentiateOptions {
#define FSDP_DIFFERENTIATE_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Update, which adds the ops by which the optimizer updates the state.
struct UpdateOptions {
#define FSDP_UPDATE_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Fuse, which groups the computation into dispatches.
struct FuseOptions {
#define FSDP_FUSE_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Plan, which converts dispatches to programs whose buffers are packed into arenas.
struct PlanOptions {
#define FSDP_PLAN_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of Codegen, which compiles kernels to machine code. Other stages read the properties of
/// the target through Analysis/TargetInfo.h.
struct CodegenOptions {
#define FSDP_CODEGEN_OPTION MEMBER
#include "fsdp/Options/Options.def"
  /// Returns true if kernels run on a CPU.
  bool isForCpu() const { return target == "cpu" || target == "reference"; }
  /// Returns true if f32 factors of products are rounded to TF32.
  bool roundsToTF32() const { return !isForCpu() && f32Products == F32Products::TF32; }
};

/// Options of Package, which writes the plan and the code to an artifact.
struct PackageOptions {
#define FSDP_PACKAGE_OPTION MEMBER
#include "fsdp/Options/Options.def"
};

/// Options of fsdp-compile itself. These options describe the input of fsdp-compile, and all its
/// outputs except the artifact.
struct DriverOptions {
#define FSDP_DRIVER_OPTION MEMBER
#include "fsdp/Options/Options.def"
  std::string input = "-"; ///< path of the model; the artifact contains it
  std::string compiler;    ///< name and version of the compiler; the artifact contains them
};
#undef MEMBER

/// Source of the value of an option.
enum class OptionOrigin { Default, File, CommandLine };

struct StepOptions {
  ImportOptions import;
  ShardOptions shard;
  DifferentiateOptions differentiate;
  UpdateOptions update;
  FuseOptions fuse;
  PlanOptions plan;
  CodegenOptions codegen;
  PackageOptions package;
  DriverOptions driver;

  /// Origin of the value of each option that the user set. The key is the name of the option.
  llvm::StringMap<OptionOrigin> origins = {};
  /// Text of each of these values, as the user wrote it.
  llvm::StringMap<std::string> texts = {};

  OptionOrigin getOrigin(llvm::StringRef name) const {
    auto found = origins.find(name);
    return found == origins.end() ? OptionOrigin::Default : found->second;
  }
  bool isGiven(llvm::StringRef name) const { return origins.contains(name); }
};

} // namespace mlir::fsdp

#endif // FSDP_OPTIONS_OPTIONS_H
