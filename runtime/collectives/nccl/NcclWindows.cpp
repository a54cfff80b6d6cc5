//===- NcclWindows.cpp - Arenas that other ranks of NCCL address *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "collectives/nccl/NcclWindows.h"
#include "core/Error.h"

using namespace fsdprt;

NcclConfig NcclSettings::configFor(const NcclLibrary &nccl) const {
  NcclConfig config;
  config.maxCTAs = maxCTAs;
  if (ctaPolicy == NcclConfig::unset)
    return config;
  bool isZero = ctaPolicy == ncclPolicyZero;
  int first = isZero ? NcclLibrary::withPolicyZero : NcclLibrary::withWindows;
  if (nccl.version() < first)
    badInput("--nccl-cta-policy=%s: expected NCCL %s or later, found %s; run without this option",
             isZero ? "zero" : "efficiency", NcclLibrary::versionText(first).c_str(),
             nccl.text().c_str());
  config.setPolicy(ctaPolicy);
  return config;
}

NcclWindows::NcclWindows(const NcclLibrary &nccl, const NcclSettings &settings, bool isOnDevice)
    : nccl(nccl), settings(settings),
      isPossible(isOnDevice && settings.windows != NcclSettings::Windows::off) {
  if (!isOnDevice && settings.windows == NcclSettings::Windows::on)
    badInput("--nccl-windows=on: expected arenas on GPUs, found arenas in host memory");
  if (!isPossible)
    return;
  if (nccl.version() < NcclLibrary::withWindows)
    refuse("NCCL " + NcclLibrary::versionText(NcclLibrary::withWindows) + " and later has them");
  else if (!nccl.windowRegister || !nccl.windowDeregister || !nccl.memAlloc || !nccl.memFree)
    refuse("the library has no ncclCommWindowRegister or no ncclMemAlloc");
}

void NcclWindows::refuse(const std::string &why) {
  if (reason.empty())
    reason = why;
  if (settings.windows == NcclSettings::Windows::on)
    badInput("--nccl-windows=on: cannot register arenas as windows of %s: %s; run with "
             "--nccl-windows=auto or off",
             nccl.text().c_str(), reason.c_str());
}

std::byte *NcclWindows::allocate(uint64_t bytes) {
  if (!areWanted())
    return nullptr;
  void *memory = nullptr;
  if (NcclResult result = nccl.memAlloc(&memory, bytes); result != ncclOk) {
    refuse("ncclMemAlloc: " + nccl.reason(result, nullptr));
    return nullptr;
  }
  allocated.insert(static_cast<std::byte *>(memory));
  return static_cast<std::byte *>(memory);
}

void NcclWindows::release(std::byte *memory) {
  allocated.erase(memory);
  nccl.memFree(memory);
}

std::string NcclWindows::describe() const {
  if (!isPossible)
    return "";
  std::string text = reason.empty() ? "; arenas are symmetric windows"
                                    : "; arenas are not symmetric windows: " + reason;
  if (!reason.empty() && settings.ctaPolicy == ncclPolicyZero)
    text += "; --nccl-cta-policy=zero needs them, so kernels move all data";
  return text;
}
