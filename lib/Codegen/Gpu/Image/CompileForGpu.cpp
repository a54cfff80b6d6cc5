//===- CompileForGpu.cpp - Packages GPU kernels for the artifact --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     0                        64-byte aligned
//     | PTX of all kernels     | cubin, if ptxas is found |
//
// In the image, a launch becomes a phase whose range is its blocks of threads. The scratch of a
// kernel becomes shared scratch. At run time, the driver loads the cubin if the GPU has the chip
// for which the cubin was assembled. For a newer GPU, the driver compiles the PTX.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Gpu/Gemm/GpuGemm.h"
#include "fsdp/Analysis/Cluster.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Codegen/Gpu/MeasureGpu.h"
#include "fsdp/Codegen/Gpu/Ptxas.h"
#include "fsdp/IR/DispatchKernel.h"

using namespace mlir;
using namespace mlir::fsdp;

static GpuGrid getGrid(const GpuLaunch &launch) {
  GpuGrid grid{launch.blocks, launch.threads, launch.sharedBytes, launch.cluster, {}};
  for (const GpuTensorMap &map : launch.maps)
    grid.tensors.push_back({map.binding,
                            map.offset,
                            map.type,
                            {map.sizes.begin(), map.sizes.end()},
                            {map.strides.begin(), map.strides.end()},
                            {map.box.begin(), map.box.end()}});
  return grid;
}

static CompiledKernels toCompiledKernels(GpuImage &&compiled) {
  CompiledKernels kernels;
  for (GpuKernel &kernel : compiled.kernels) {
    KernelInfo &info = kernels.image.kernels.emplace_back(std::move(kernel.info));
    info.phases.clear();
    info.sharedBytes = kernel.scratchBytes;
    for (const GpuLaunch &launch : kernel.launches) {
      info.phases.push_back({launch.symbol, launch.blocks, 1});
      kernels.gpu.costs[launch.symbol] = launch.cost;
      if (launch.product)
        kernels.gpu.products[launch.symbol] = *launch.product;
      else
        kernels.gpu.grids[launch.symbol] = getGrid(launch);
    }
  }
  constexpr uint64_t cubinAlignment = 64;
  kernels.gpu.chip = compiled.chip;
  kernels.gpu.ptxBytes = compiled.ptx.size();
  std::vector<char> &bytes = kernels.image.elf;
  bytes.assign(compiled.ptx.begin(), compiled.ptx.end());
  if (!compiled.cubin.empty()) {
    bytes.resize(llvm::alignTo(bytes.size(), cubinAlignment));
    kernels.gpu.cubinOffset = bytes.size();
    kernels.gpu.cubinBytes = compiled.cubin.size();
    bytes.insert(bytes.end(), compiled.cubin.begin(), compiled.cubin.end());
  }
  return kernels;
}

FailureOr<CompiledKernels> fsdp::compileForGpu(ModuleOp planned, const CodegenOptions &options,
                                               bool code) {
  FailureOr<GpuTarget> target = GpuTarget::get(options, planned.getLoc());
  if (failed(target))
    return failure();
  FailureOr<GpuImage> compiled =
      code ? compileGpuImage(planned, *target, options) : measureGpuKernels(planned, *target);
  if (failed(compiled))
    return failure();
  return toCompiledKernels(std::move(*compiled));
}

LogicalResult fsdp::printGpuKernels(ModuleOp planned, const CodegenOptions &options, EmitKind what,
                                    llvm::raw_ostream &os) {
  FailureOr<GpuTarget> target = GpuTarget::get(options, planned.getLoc());
  if (failed(target))
    return failure();
  auto none = [&]() -> LogicalResult {
    return emitError(planned.getLoc()) << "no kernel was generated for " << options.target;
  };
  if (what == EmitKind::Clocks) {
    FailureOr<GpuImage> measured = measureGpuKernels(planned, *target);
    if (failed(measured))
      return failure();
    if (measured->kernels.empty())
      return none();
    printCosts(*measured, os);
    return success();
  }
  FailureOr<GpuImage> image = compileGpuImage(
      planned, *target, options, what == EmitKind::KernelMlir ? GpuOutput::Mlir : GpuOutput::Cubin);
  if (failed(image))
    return failure();
  if (image->kernels.empty())
    return none();
  if (what == EmitKind::SassStats) {
    if (image->cubin.empty())
      return emitError(planned.getLoc())
             << "--emit=sass-stats needs ptxas, which was not found in " << ptxasPlaces;
    if (image->reports.empty())
      return emitError(planned.getLoc())
             << "--emit=sass-stats reads the output of ptxas -v: expected lines such as "
                "\"Compiling entry function\", found none";
    printStatistics(*image, os);
    return success();
  }
  printLaunches(*image, os);
  os << (what == EmitKind::Ptx ? image->ptx : image->mlir);
  return success();
}

namespace {
class GpuTargetInfo : public TargetInfo {
public:
  explicit GpuTargetInfo(GpuTarget target) : target(std::move(target)) {}

  /// A chunk of R rows of logits reads a bf16 weight [V, H] twice. It also reads and writes the
  /// gradient of the weight in f32. These are 12 V H bytes for 6 R V H operations. In the time in
  /// which a GPU transfers one byte, it does about 300 operations (H100: 990 TFLOP/s, 3.35 TB/s).
  /// With 2048 rows, the operations therefore take 3.5 times as long as the transfers.
  ChunkLimits getChunkLimits() const override { return {256 << 20, 2048}; }
  /// Rows are aligned to 16 bytes, because tensor maps and the widest form of cp.async copy
  /// multiples of 16 bytes.
  RowAlignment getRowAlignment() const override { return {16, true}; }
  int64_t getHeadAlignment() const override { return headBytes; }
  /// The kernel of AdamW writes narrow parameters in the pass in which it writes masters. Rounding
  /// the masters before a gather would read and write them in another launch.
  ParamStorage getParamStorage() const override { return ParamStorage::Both; }
  bool sumsFactors(Operation *dispatch) const override {
    auto copy = cast<DispatchOp>(dispatch->clone());
    func::FuncOp kernel = buildKernel(copy);
    bool sums = gemm::sumsFactor(kernel, target);
    kernel.erase();
    copy.erase();
    return sums;
  }
  bool hostComputes() const override { return false; }
  StringRef getClusterName() const override { return gpuClusterName; }
  std::optional<std::string> whyNoAttention(Operation *op) const override {
    std::optional<std::string> reason = whyNoGpuAttention(op, target);
    return reason ? std::optional(target.chip + ": " + *reason) : std::nullopt;
  }

private:
  GpuTarget target;
};
} // namespace

std::unique_ptr<TargetInfo> fsdp::createGpuTargetInfo(const CodegenOptions &options) {
  if (!GpuTarget::isKnown(options.target))
    return nullptr;
  // The context is only needed for a location; nothing prints its diagnostics.
  MLIRContext context;
  FailureOr<GpuTarget> target = GpuTarget::get(options, UnknownLoc::get(&context));
  return std::make_unique<GpuTargetInfo>(*target);
}
