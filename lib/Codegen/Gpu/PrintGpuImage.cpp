//===- PrintGpuImage.cpp - What --emit prints -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

void fsdp::printLaunches(const GpuImage &image, llvm::raw_ostream &os) {
  for (const GpuKernel &kernel : image.kernels) {
    os << "// @" << kernel.info.name << ": " << kernel.info.bindingBytes.size() << " bindings, " << kernel.scratchBytes
       << " bytes of scratch\n";
    for (const GpuLaunch &launch : kernel.launches)
      os << "//   launch " << launch.symbol << ": " << launch.blocks << " blocks of " << launch.threads << " threads, "
         << launch.sharedBytes << " bytes of shared memory\n";
  }
}

void fsdp::printStatistics(const GpuImage &image, llvm::raw_ostream &os) {
  os << "entry                          blocks threads registers   shared    stack   spills barriers\n";
  for (const GpuKernel &kernel : image.kernels)
    for (const GpuLaunch &launch : kernel.launches) {
      auto entry = llvm::find_if(image.reports, [&](const EntryReport &r) { return r.symbol == launch.symbol; });
      if (entry == image.reports.end())
        continue;
      os << llvm::left_justify(launch.symbol, 28)
         << llvm::format(" %8lld %7lld %9lld %8lld %8lld %8lld %8lld\n", static_cast<long long>(launch.blocks),
                         static_cast<long long>(launch.threads), static_cast<long long>(entry->registers),
                         static_cast<long long>(launch.sharedBytes + entry->sharedBytes), static_cast<long long>(entry->stackBytes),
                         static_cast<long long>(entry->spillStoreBytes + entry->spillLoadBytes),
                         static_cast<long long>(entry->barriers));
    }
}
