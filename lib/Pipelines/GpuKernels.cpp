//===- GpuKernels.cpp - An artifact's kernels for a GPU ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     0                        64-byte aligned
//     | PTX of all kernels     | cubin, where there is a ptxas |
//
// A launch becomes a phase over its blocks, the kernel's scratch the shared scratch of the
// launch. The driver of a newer chip compiles the PTX; that of the chip itself takes the cubin.
//
//===----------------------------------------------------------------------===//

#include "GpuKernels.h"
#include "fsdp/Analysis/Cluster.h"
#include "fsdp/Codegen/Gpu/MeasureGpu.h"
#include <mutex>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

static GpuGrid getGrid(const GpuLaunch &launch) {
  GpuGrid grid{launch.blocks, launch.threads, launch.sharedBytes, launch.cluster, {}};
  for (const GpuTensorMap &map : launch.maps)
    grid.tensors.push_back({map.binding,
                            map.offset,
                            map.isBf16,
                            {map.sizes.begin(), map.sizes.end()},
                            {map.strides.begin(), map.strides.end()},
                            {map.box.begin(), map.box.end()}});
  return grid;
}

static Kernels toKernels(GpuImage &&compiled) {
  Kernels kernels;
  for (GpuKernel &kernel : compiled.kernels) {
    KernelInfo &info = kernels.image.kernels.emplace_back(std::move(kernel.info));
    info.phases.clear();
    info.sharedBytes = kernel.scratchBytes;
    for (const GpuLaunch &launch : kernel.launches) {
      info.phases.push_back({launch.symbol, launch.blocks, 1});
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

FailureOr<GpuTarget> fsdp::getGpuTarget(const CompileOptions &options, Location loc) {
  FailureOr<GpuTarget> target = GpuTarget::get(options.target, loc);
  if (failed(target))
    return failure();
  target->gemm = options.gpu.gemm;
  if (options.gpu.gemmWorkspace)
    target->gemmWorkspace = options.gpu.gemmWorkspace;
  return target;
}

namespace {
/// Which attention there is a kernel for. A model's programs and layers have the same, and a plan
/// may be made anew: each reason is said once.
class AttentionKernels {
public:
  explicit AttentionKernels(const GpuTarget &target) : target(target) {}

  bool have(Operation *op) {
    std::optional<std::string> reason = whyNoGpuAttention(op, target);
    std::lock_guard<std::mutex> guard(mutex);
    if (reason && said.insert(*reason).second)
      op->emitWarning("no kernel for ")
          << target.chip << ": " << *reason << "; scores are whole in memory";
    return !reason;
  }

private:
  const GpuTarget target;
  std::mutex mutex;
  std::set<std::string> said;
};
} // namespace

LogicalResult fsdp::fitToGpu(CompileOptions &options, Location loc) {
  FailureOr<GpuTarget> target = getGpuTarget(options, loc);
  if (failed(target))
    return failure();
  options.plan.hostComputes = false;
  if (options.plan.cluster.empty())
    options.plan.cluster = gpuClusterName.str();
  if (!options.fuse.chunks)
    options.fuse.chunks = gpuChunks;
  constexpr int64_t tileRowBytes = 16; // of tensor maps and of the widest cp.async
  options.fuse.rowAlignment = tileRowBytes;
  if (!options.fuse.hasAttentionKernel) // who has warned, goes on to remember it
    options.fuse.hasAttentionKernel = [asked = std::make_shared<AttentionKernels>(*target)](
                                          Operation *op) { return asked->have(op); };
  return success();
}

FailureOr<Kernels> fsdp::compileForGpu(ModuleOp planned, const CompileOptions &options, bool code) {
  FailureOr<GpuTarget> target = getGpuTarget(options, planned.getLoc());
  if (failed(target))
    return failure();
  FailureOr<GpuImage> compiled =
      code ? compileGpuImage(planned, *target, options.gpu) : measureGpuKernels(planned, *target);
  if (failed(compiled))
    return failure();
  return toKernels(std::move(*compiled));
}
