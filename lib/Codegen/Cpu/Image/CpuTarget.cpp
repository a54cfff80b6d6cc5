//===- CpuTarget.cpp - The CPU that kernels are compiled for ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An image is compiled for a microarchitecture level and runs on every CPU of this level:
//
//   x86-64-v4   AVX-512 F, BW, CD, DQ, VL     vectors of 512 bits
//   x86-64-v3   AVX2, FMA, F16C, BMI          vectors of 256 bits
//
// For products of bf16 matrices, a CPU uses the method in the first row whose features it has:
//
//   features                     method      measured (docs/reference/cpu-targets.md)
//   AMX-TILE, AMX-BF16           Tiles       14 x the rate of f32 on Sapphire Rapids
//   AVX512-BF16, AVX512-FP16     Widened     vdpbf16ps has half the rate of f32 on this CPU
//   AVX512-BF16                  Dot         twice the rate of f32 on Zen 4
//   none of these                Widened
//
// With Tiles, contractions of f32 consist of six products of bf16 (Cpu/Amx/F32Slices.h).
//
// The feature AVX512-FP16 identifies Intel's server cores. On these cores, vdpbf16ps is slower than
// two fused multiply-adds on operands converted to f32. The shared cache of these processors is
// distant: a core copies about 14 GB/s from and to it, and does about 90 f32 multiply-adds per ns.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/CpuTarget.h"
#include "fsdpcommon/TileData.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The name of a CPU feature in LLVM and in /proc/cpuinfo.
struct Feature {
  StringLiteral llvm, cpuinfo;
};
} // namespace

static constexpr Feature level3[] = {{"sse4.2", "sse4_2"}, {"popcnt", "popcnt"}, {"avx", "avx"},
                                     {"avx2", "avx2"},     {"fma", "fma"},       {"f16c", "f16c"},
                                     {"bmi", "bmi1"},      {"bmi2", "bmi2"},     {"lzcnt", "abm"},
                                     {"movbe", "movbe"}};
static constexpr Feature level4[] = {{"avx512f", "avx512f"},
                                     {"avx512bw", "avx512bw"},
                                     {"avx512cd", "avx512cd"},
                                     {"avx512dq", "avx512dq"},
                                     {"avx512vl", "avx512vl"}};
static constexpr Feature dotBf16 = {"avx512bf16", "avx512_bf16"};
static constexpr Feature tileBf16[] = {{"amx-tile", "amx_tile"}, {"amx-bf16", "amx_bf16"}};

/// Returns the target of tests that check AMX kernels on CPUs without AMX. In this target, products
/// are loops on vectors of 512 bits. If the CPU has narrower registers, LLVM splits the vectors.
static CpuTarget getTileLoops() {
  CpuTarget target;
  target.cpu = target.tune = "x86-64-v3";
  target.vectorBits = 512;
  target.bf16 = Bf16Products::TileLoops;
  for (const Feature &feature : level3)
    target.isa.push_back(feature.cpuinfo.str());
  return target;
}

FailureOr<CpuTarget> CpuTarget::get(StringRef name, Location loc) {
  std::string why;
  if (std::optional<CpuTarget> target = find(name, why))
    return *target;
  return emitError(loc) << why;
}

std::optional<CpuTarget> CpuTarget::find(StringRef name, std::string &why) {
  if (name == "amx-loops")
    return getTileLoops();
  bool native = name.empty() || name == "native";
  StringRef cpu = native ? llvm::sys::getHostCPUName() : name;
  llvm::StringMap<bool> has;
  if (native) {
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      has[feature.first()] = feature.second;
  } else {
    if (llvm::X86::parseArchX86(cpu, /*Only64Bit=*/true) == llvm::X86::CK_None) {
      why = ("expected 'native' or the name of an x86-64 cpu (x86-64-v3, znver4, sapphirerapids), "
             "found '" +
             name + "'")
                .str();
      return std::nullopt;
    }
    SmallVector<StringRef> features;
    llvm::X86::getFeaturesForCPU(cpu, features);
    for (StringRef feature : features) {
      has[feature] = true;
      llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, has);
    }
  }
  auto hasAll = [&](ArrayRef<Feature> level, StringRef *missing) {
    for (const Feature &feature : level)
      if (!has.lookup(feature.llvm)) {
        *missing = feature.cpuinfo;
        return false;
      }
    return true;
  };
  StringRef missing;
  if (!hasAll(level3, &missing)) {
    why = ("expected a cpu of level x86-64-v3 or above (AVX2 and FMA), but '" + cpu + "' has no " +
           missing)
              .str();
    return std::nullopt;
  }

  CpuTarget target;
  target.tune = cpu.str();
  target.cpu = "x86-64-v3";
  auto require = [&](ArrayRef<Feature> level) {
    for (const Feature &feature : level)
      target.isa.push_back(feature.cpuinfo.str());
  };
  require(level3);
  if (hasAll(level4, &missing)) {
    target.cpu = "x86-64-v4";
    target.vectorBits = 512;
    require(level4);
    auto use = [&](ArrayRef<Feature> features) {
      for (const Feature &feature : features)
        target.features += (target.features.empty() ? "+" : ",+") + feature.llvm.str();
      require(features);
    };
    if (has.lookup(dotBf16.llvm)) {
      // AVX512-BF16 is used for conversions to bf16 even if its products are slow.
      use(dotBf16);
      target.hasDistantCache = has.lookup("avx512fp16");
      if (!target.hasDistantCache)
        target.bf16 = Bf16Products::Dot;
    }
    if (hasAll(tileBf16, &missing) && (!native || fsdpcommon::requestTileData())) {
      use(tileBf16);
      target.bf16 = Bf16Products::Tiles;
    }
  }
  return target;
}

std::unique_ptr<llvm::TargetMachine> CpuTarget::createTargetMachine() const {
  static bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialised;
  std::string error;
  llvm::Triple parsed(triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  // The floating-point contract requires that only math.fma becomes a fused multiply-add.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(parsed, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
                                   llvm::CodeGenOptLevel::Aggressive));
}
