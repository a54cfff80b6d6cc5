//===- CompileGpuImage.cpp - Compiles the kernels of a module to PTX --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Emit the entries of each supported kernel into one module. If a library computes a kernel,
//     emit a call of the library instead.
//  2. Lower the module and emit its PTX.
//  3. Assemble the PTX if ptxas is found.
//
// No kernel is compiled twice, because the stage Plan creates one kernel for all equal dispatches.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Attention/GpuBackward.h"
#include "Codegen/Gpu/Attention/Sm80Backward.h"
#include "Codegen/Gpu/Attention/Sm90Attention.h"
#include "Codegen/Gpu/Gemm/GpuGemm.h"
#include "Codegen/Gpu/Gemm/LibraryGemm.h"
#include "Codegen/Gpu/Nests/GpuNests.h"
#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "Codegen/Kernel/Lowering.h"
#include "GpuLowering.h"
#include "fsdp/Codegen/Gpu/MeasureGpu.h"
#include "fsdp/Codegen/Gpu/Ptxas.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::attention;

static std::string describeShape(const Shape &shape, Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "head dimensions " << shape.dim << " and " << shape.valueDim << " in " << type;
  return text;
}

/// Returns the reason why an attention op or its gradient has no kernel, or nothing if it has one.
template <typename Op, typename Choose>
static std::optional<std::string> whyNone(Op op, StringRef what, const GpuTarget &target,
                                          Choose choose) {
  Shape shape = getShape(op.getQ().getType(), op.getK().getType(), op.getV().getType());
  Type element = cast<RankedTensorType>(op.getQ().getType()).getElementType();
  if (element.isF64())
    return (what + " in f64").str();
  // Offsets within a head have 32 bits in the generated code.
  int64_t largest = std::max(shape.rows, shape.cols) * std::max(shape.dim, shape.valueDim) *
                    tile::Sm80Tiles::bytesOf(element);
  if (largest >= INT64_C(1) << 31)
    return (what + " with heads of 2 GiB or more").str();
  if (!choose(shape, element, target))
    return (what + " with " + describeShape(shape, element)).str();
  return std::nullopt;
}

/// Returns true for a contraction that has a tiled GPU kernel or a tile attribute. All other
/// contractions are lowered as ordinary reductions.
static bool isContraction(func::FuncOp kernel, const GpuTarget &target) {
  bool contracts =
      kernel.getBody().hasOneBlock() && !kernel.front().getOps<linalg::ContractOp>().empty();
  return contracts && (kernel->hasAttr(gemm::gemmTileAttr) || !gemm::whyNoGpuGemm(kernel, target));
}

std::optional<std::string> fsdp::whyNoGpuAttention(Operation *op, const GpuTarget &target) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return whyNone(forward, "attention", target, chooseForward);
  if (auto backward = dyn_cast<AttentionGradOp>(op))
    return whyNone(backward, "gradients of attention", target, chooseBackward);
  return std::nullopt;
}

std::optional<std::string> fsdp::whyNoGpuKernel(func::FuncOp kernel, const GpuTarget &target) {
  if (isContraction(kernel, target))
    return gemm::whyNoGpuGemm(kernel, target);
  Operation *attention = findAttention(kernel, headBytes);
  return attention ? whyNoGpuAttention(attention, target) : std::nullopt;
}

/// Allows tanh to have an absolute error of 2^-21 (GpuMath.cpp) if scores are computed from bf16 or
/// f16. This error is small enough, because an exponential depends on the absolute error of its
/// score. A capped score is the cap times a tanh, so its error is the cap times 2^-21. The score
/// before the cap is a sum of products in f32, whose error is at least as large.
static void shortenTanh(LLVM::LLVMFuncOp entry) {
  entry.walk([](math::TanhOp op) { op.setFastmath(op.getFastmath() | arith::FastMathFlags::afn); });
}

static LogicalResult lowerAttention(func::FuncOp kernel, Operation *op, const GpuTarget &target,
                                    ModuleOp entries, GpuKernel &info) {
  if (auto forward = dyn_cast<AttentionOp>(op)) {
    if (std::optional<Sm90Config> config = chooseSm90Forward(forward, target))
      return lowerSm90Forward(kernel, forward, *config, target, entries, info);
    return lowerSm80Forward(kernel, forward, target, entries, info);
  }
  return lowerGpuBackward(kernel, cast<AttentionGradOp>(op), target, entries, info);
}

LogicalResult fsdp::lowerGpuKernel(func::FuncOp kernel, const GpuTarget &target, ModuleOp entries,
                                   GpuKernel &info) {
  kernel.walk([](linalg::GenericOp op) { simplifyActivations(*op.getBody()); });
  if (isContraction(kernel, target))
    return gemm::lowerGpuGemm(kernel, target, entries, info);
  Operation *attention = findAttention(kernel, headBytes);
  if (!attention)
    return lowerGpuNestKernel(kernel, target, entries, info);
  if (failed(lowerAttention(kernel, attention, target, entries, info)))
    return failure();
  Type element = getElementTypeOrSelf(attention->getOperand(0).getType());
  info.roundsToTF32 = element.isF32() && target.f32Products == F32Products::TF32;
  if (!element.isF32())
    for (const GpuLaunch &launch : info.launches)
      shortenTanh(entries.lookupSymbol<LLVM::LLVMFuncOp>(launch.symbol));
  return success();
}

/// Emits the entries of all supported kernels of `module` into a new module, and adds their
/// launches to `image`.
static FailureOr<OwningOpRef<ModuleOp>> collectEntries(ModuleOp module, const GpuTarget &target,
                                                       GpuImage &image) {
  OwningOpRef<ModuleOp> entries = ModuleOp::create(module.getLoc());
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(kernelAttr))
      continue;
    GpuKernel info;
    if (failed(describeKernel(kernel, info.info)) || failed(verifyFloatContract(kernel)))
      return failure();
    if (std::optional<std::string> reason = whyNoGpuKernel(kernel, target)) {
      kernel.emitWarning("no kernel for ")
          << target.chip << ": " << *reason << " ('" << kernel.getName() << "')";
      continue;
    }
    if (std::optional<GpuProduct> product = gemm::readAsLibraryProduct(kernel, target))
      gemm::lowerToLibraryProduct(kernel, *product, target, info);
    else if (failed(lowerGpuKernel(kernel, target, *entries, info)))
      return failure();
    image.kernels.push_back(std::move(info));
  }
  return entries;
}

/// Names the kernels whose results depend on --f32-products=tf32.
static void remarkRounding(ModuleOp module, const GpuImage &image) {
  for (const GpuKernel &kernel : image.kernels) {
    if (!kernel.roundsToTF32)
      continue;
    auto function = module.lookupSymbol<func::FuncOp>(kernel.info.name);
    InFlightDiagnostic remark = emitRemark(function.getLoc(), "f32 factors are rounded to TF32");
    if (!kernel.whyNoWarpgroups.empty())
      remark << "; mma.sync multiplies them instead of wgmma: " << kernel.whyNoWarpgroups;
  }
}

FailureOr<GpuImage> fsdp::measureGpuKernels(ModuleOp module, const GpuTarget &target) {
  loadGpuDialects(*module.getContext());
  GpuImage image;
  image.chip = target.chip;
  if (failed(collectEntries(module, target, image)))
    return failure();
  return image;
}

FailureOr<GpuImage> fsdp::compileGpuImage(ModuleOp module, const GpuTarget &target,
                                          const CodegenOptions &options, GpuOutput output) {
  loadGpuDialects(*module.getContext());
  GpuImage image;
  image.chip = target.chip;
  std::string ptxas = output == GpuOutput::Cubin ? findPtxas() : std::string();
  if (output == GpuOutput::Cubin && ptxas.empty() && options.spills == SpillPolicy::Error)
    return emitError(module.getLoc())
           << "--spills=error needs ptxas, which was not found in " << ptxasPlaces;
  FailureOr<OwningOpRef<ModuleOp>> entries = collectEntries(module, target, image);
  if (failed(entries))
    return failure();
  if (image.kernels.empty())
    return image;
  remarkRounding(module, image);
  cleanUp(**entries);
  if (output == GpuOutput::Mlir)
    llvm::raw_string_ostream(image.mlir) << **entries;
  if (failed(lowerToNvvm(**entries)))
    return failure();
  FailureOr<std::string> ptx = emitPtx(**entries, target);
  if (failed(ptx))
    return failure();
  image.ptx = std::move(*ptx);
  if (output != GpuOutput::Cubin)
    return image;
  if (ptxas.empty()) {
    emitRemark(module.getLoc()) << "ptxas was not found in " << ptxasPlaces
                                << ": only PTX is written";
    return image;
  }
  if (failed(assemble(image, ptxas, target, options, module.getLoc())))
    return failure();
  return image;
}
