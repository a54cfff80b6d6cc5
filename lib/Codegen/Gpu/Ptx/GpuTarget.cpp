//===- GpuTarget.cpp - The GPU that kernels are compiled for ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The limits are from the CUDA programming guide, "Technical Specifications per Compute
// Capability". The PTX versions are the oldest versions that have the instructions of the kernels,
// so that older drivers accept the PTX, too.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Gpu/GpuTarget.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Default size in bytes of the workspace of cuBLAS: on chips without warpgroup instructions
/// (`plainWorkspace`), and on all other chips (`largeWorkspace`).
static constexpr int64_t plainWorkspace = 4 << 20, largeWorkspace = 32 << 20;

static const GpuTarget chips[] = {
    {"sm_80", 71, 163 * 1024, 164 * 1024, 65536, 108, 255, 1024, GemmSource::Auto, plainWorkspace},
    {"sm_90a", 86, 227 * 1024, 228 * 1024, 65536, 132, 255, 1024, GemmSource::Auto, largeWorkspace},
    {"sm_100a", 86, 227 * 1024, 228 * 1024, 65536, 148, 255, 1024, GemmSource::Auto,
     largeWorkspace},
};

static const GpuTarget *find(StringRef name) {
  return llvm::find_if(chips, [&](const GpuTarget &chip) { return chip.chip == name; });
}

bool GpuTarget::isKnown(StringRef name) { return find(name) != std::end(chips); }

std::string GpuTarget::getNames() { return "sm_80, sm_90a or sm_100a"; }

FailureOr<GpuTarget> GpuTarget::get(const CodegenOptions &options, Location loc) {
  if (!isKnown(options.target))
    return emitError(loc) << "expected " << getNames() << ", found the chip '" << options.target
                          << "'";
  GpuTarget target = *find(options.target);
  target.gemm = options.gemm;
  target.f32Products = options.f32Products;
  if (options.gemmWorkspace > 0)
    target.gemmWorkspace = options.gemmWorkspace;
  return target;
}

std::unique_ptr<llvm::TargetMachine> GpuTarget::createTargetMachine() const {
  static const bool initialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip, "+ptx" + std::to_string(ptxVersion), llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}
