//===- CudaPhysicalDevice.cpp - A GPU with an artifact's code ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// When the module is loaded, each of its kernels is looked up and configured once. To launch a
// kernel, it is therefore enough to look up the phase in a table, to encode the tensor maps, and to
// call the driver once.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaPhysicalDevice.h"
#include "core/Error.h"
#include <algorithm>
#include <cstdlib>

using namespace fsdprt;

// Number of bytes of shared memory that a kernel may use without a call that raises the limit.
static constexpr uint64_t sharedWithoutAsking = 48 << 10;
// The size of each allocation of device memory is a multiple of this number of bytes.
static constexpr uint64_t granularity = uint64_t(2) << 20;

std::string CudaPhysicalDevice::Arenas::text() const {
  return format("%s of memory for the arena%s of %u rank%s", bytesText(ranks * bytes).c_str(),
                ranks == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s");
}

CudaPhysicalDevice::CudaPhysicalDevice(const CudaDriver &cuda, const Artifact &artifact,
                                       int ordinal, Arenas arenas)
    : cuda(cuda), artifact(artifact), ordinal(ordinal), arenas(arenas) {
  cuda.check(cuda.deviceGet(&device, ordinal), "get a GPU");
  checkCapability();
  CudaResult result = cuda.primaryContextRetain(&context, device);
  if (result == cudaOutOfMemory) {
    size_t total = 0;
    cuda.deviceTotalMem(&total, device);
    badInput("%s: expected memory for a context on %s beside %s, found too little of %s in all; "
             "run nvidia-smi to see what else uses it",
             artifact.getFile().c_str(), name().c_str(), arenas.text().c_str(),
             bytesText(total).c_str());
  }
  cuda.check(result, "use a GPU");
}

CudaPhysicalDevice::~CudaPhysicalDevice() {
  if (!context)
    return;
  use();
  sums.reset();
  plans.reset();
  if (module)
    cuda.moduleUnload(module);
  cuda.primaryContextRelease(device);
}

int CudaPhysicalDevice::attribute(int number) const {
  int value = 0;
  cuda.check(cuda.deviceGetAttribute(&value, number, device), "query a GPU's properties");
  return value;
}

std::string CudaPhysicalDevice::name() const {
  char text[128] = "";
  cuda.deviceGetName(text, sizeof(text) - 1, device);
  return format("GPU %d, %s,", ordinal, printable(text).c_str());
}

/// Throws Error if this GPU cannot run the code of the artifact. If the name of the target has a
/// suffix, as in sm_90a, the code runs only on GPUs with exactly this compute capability. Code for
/// any other target also runs on all later GPUs.
void CudaPhysicalDevice::checkCapability() const {
  std::string chip = artifact.gpu()->chip()->str();
  int wanted = std::atoi(chip.c_str() + std::min<size_t>(chip.size(), 3));
  int found = attribute(cudaCapabilityMajor) * 10 + attribute(cudaCapabilityMinor);
  bool isExact = !chip.empty() && chip.back() == 'a';
  if (isExact ? found != wanted : found < wanted)
    badInput("%s: compiled for %s, which needs compute capability %d.%d%s, found %s of %d.%d; "
             "compile with another --target",
             artifact.getFile().c_str(), printable(chip).c_str(), wanted / 10, wanted % 10,
             isExact ? "" : " or later", name().c_str(), found / 10, found % 10);
}

void CudaPhysicalDevice::checkMemory() const {
  size_t free = 0, total = 0;
  use();
  cuda.check(cuda.memGetInfo(&free, &total), "query a GPU's memory");
  uint64_t taken = (arenas.bytes + granularity - 1) / granularity * granularity * arenas.ranks;
  if (taken > free)
    badInput("%s: expected %s on %s found %s free of %s after loading context and code",
             artifact.getFile().c_str(), arenas.text().c_str(), name().c_str(),
             bytesText(free).c_str(), bytesText(total).c_str());
}

uint64_t CudaPhysicalDevice::bytesBeside() const {
  size_t free = 0, total = 0;
  use();
  cuda.check(cuda.memGetInfo(&free, &total), "query a GPU's memory");
  return total - free - std::min<uint64_t>(total - free, static_cast<uint64_t>(arenaBytes.load()));
}

void CudaPhysicalDevice::loadModule() {
  const fb::Gpu &gpu = *artifact.gpu();
  if (gpu.cubin_bytes()) {
    CudaResult result = cuda.moduleLoadData(&module, artifact.cubin().data());
    // If the GPU cannot run this machine code, because the code is for another chip, continue and
    // let the driver compile the PTX.
    if (result != cudaNoBinary)
      return cuda.check(result, "load the artifact's machine code");
  }
  // Copy the text to a string, which ends with the zero byte that the driver needs.
  std::string text(artifact.ptx());
  module = cuda.translate(text.c_str(), "the artifact's PTX");
}

void CudaPhysicalDevice::findEntry(const fb::Phase &phase) {
  CudaFunction function =
      cuda.load(module, phase.symbol()->c_str(), "find a kernel in the artifact's code");
  uint64_t shared = phase.grid()->shared_bytes();
  if (shared > sharedWithoutAsking)
    cuda.check(cuda.functionSetAttribute(function, cudaMostDynamicShared, static_cast<int>(shared)),
               "set a kernel's shared memory");
  if (phase.grid()->maps() && phase.grid()->maps()->size() > mostMaps)
    badInput("%s: expected at most %u tensor maps per launch, found %u", artifact.getFile().c_str(),
             mostMaps, phase.grid()->maps()->size());
  entries.emplace(&phase, function);
}

/// Throws an Error that contains the name of the artifact, the name of the GPU, and the message of
/// `failure`. If the memory of the GPU was not sufficient, the message also contains the size of
/// the free memory and the size of the arenas.
void CudaPhysicalDevice::explain(const CudaFailure &failure) const {
  bool isBadPtx = failure.result == cudaInvalidPtx;
  if (failure.result != cudaOutOfMemory)
    throw Error(isBadPtx ? FSDPRT_BAD_INPUT : failure.status,
                format("%s: on %s %s", artifact.getFile().c_str(), name().c_str(), failure.what()));
  size_t free = 0, total = 0;
  cuda.memGetInfo(&free, &total);
  badInput("%s: expected memory for code on %s beside %s, found %s free of %s: %s",
           artifact.getFile().c_str(), name().c_str(), arenas.text().c_str(),
           bytesText(free).c_str(), bytesText(total).c_str(), failure.what());
}

void CudaPhysicalDevice::load() {
  use();
  try {
    loadAll();
  } catch (const CudaFailure &failure) {
    explain(failure);
  }
}

void CudaPhysicalDevice::loadAll() {
  loadModule();
  const auto *kernels = artifact.manifest().kernels();
  for (uint32_t i = 0; kernels && i < kernels->size(); ++i)
    for (const fb::Phase *phase : *kernels->Get(i)->phases())
      if (phase->grid())
        findEntry(*phase);
  if (hasProducts(artifact.manifest()))
    plans = std::make_shared<LibraryGemmPlans>(artifact);
  sums = std::make_unique<CudaSums>(cuda);
}
