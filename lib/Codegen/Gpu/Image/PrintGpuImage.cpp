//===- PrintGpuImage.cpp - Output of --emit ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Prints the size, the transposed factors and the epilogue of a library product.
static void printProduct(const GpuProduct &product, llvm::raw_ostream &os) {
  os << product.m << " x " << product.n << " x " << product.k << ", " << product.batches
     << (product.batches == 1 ? " time" : " times");
  for (auto [name, isThere] :
       {std::pair("lhs transposed", product.lhs.isTransposed),
        std::pair("rhs transposed", product.rhs.isTransposed),
        std::pair("added", product.addend.has_value()), std::pair("bias", product.bias.has_value()),
        std::pair("gelu", product.activation == GpuActivation::Gelu),
        std::pair("derivative of gelu", product.activation == GpuActivation::GeluGradient),
        std::pair("its argument", product.aux.has_value())})
    if (isThere)
      os << ", " << name;
  os << "\n";
}

void fsdp::printLaunches(const GpuImage &image, llvm::raw_ostream &os) {
  for (const GpuKernel &kernel : image.kernels) {
    os << "// @" << kernel.info.name << ": " << kernel.info.bindingBytes.size() << " bindings, "
       << kernel.scratchBytes << " bytes of scratch\n";
    for (const GpuLaunch &launch : kernel.launches)
      if (launch.product)
        printProduct(*launch.product, os << "//   cublasLtMatmul " << launch.symbol << ": ");
      else
        os << "//   launch " << launch.symbol << ": " << launch.blocks << " blocks of "
           << launch.threads << " threads, " << launch.sharedBytes << " bytes of shared memory\n";
  }
}

/// Returns the widest symbol of the launches.
static size_t widthOf(const GpuImage &image) {
  size_t width = 6;
  for (const GpuKernel &kernel : image.kernels)
    for (const GpuLaunch &launch : kernel.launches)
      width = std::max(width, launch.symbol.size());
  return width;
}

void fsdp::printCosts(const GpuImage &image, llvm::raw_ostream &os) {
  size_t width = widthOf(image);
  os << llvm::left_justify("launch", width)
     << "   blocks threads       clocks       tensor        issue      special       shared"
        "        cache           bytes balance\n";
  for (const GpuKernel &kernel : image.kernels)
    for (const GpuLaunch &launch : kernel.launches) {
      const GpuCost &cost = launch.cost;
      os << llvm::left_justify(launch.symbol, width)
         << llvm::format("%9lld%8lld", static_cast<long long>(launch.blocks),
                         static_cast<long long>(launch.threads));
      for (double clocks : {cost.clocks, cost.units.tensor, cost.units.issue, cost.units.special,
                            cost.units.shared, cost.units.cache})
        os << llvm::format("%13.0f", clocks);
      os << llvm::format("%16.0f%8.3f\n", cost.bytes, cost.balance);
    }
}

/// Number of warp schedulers per multiprocessor. Each one issues one instruction per cycle.
static constexpr int64_t schedulers = 4;

void fsdp::printStatistics(const GpuImage &image, llvm::raw_ostream &os) {
  size_t width = 5;
  for (const EntryReport &entry : image.reports)
    width = std::max(width, entry.symbol.size());
  os << llvm::left_justify("entry", width)
     << "   blocks threads registers shared stack spills barriers instructions  loop  mma issue "
        "tensor  exp2 overlap  idle meets fences\n";
  for (const GpuKernel &kernel : image.kernels)
    for (const GpuLaunch &launch : kernel.launches) {
      auto entry = llvm::find_if(image.reports,
                                 [&](const EntryReport &r) { return r.symbol == launch.symbol; });
      if (entry == image.reports.end())
        continue;
      os << llvm::left_justify(launch.symbol, width);
      int64_t warps = (launch.threads - launch.copyThreads) / 32;
      std::pair<int64_t, int> columns[] = {{launch.blocks, 9},
                                           {launch.threads, 8},
                                           {entry->registers, 10},
                                           {launch.sharedBytes + entry->sharedBytes, 7},
                                           {entry->stackBytes, 6},
                                           {entry->spillStoreBytes + entry->spillLoadBytes, 7},
                                           {entry->barriers, 9},
                                           {entry->instructions, 13},
                                           {entry->loopInstructions, 6},
                                           {entry->loopMma, 5},
                                           {entry->loopInstructions * warps / schedulers, 6},
                                           {entry->loopTensorCycles * warps / schedulers, 7},
                                           {entry->loopExponentials, 6},
                                           {entry->loopOverlapped, 8},
                                           {entry->loopIdle, 6},
                                           {entry->loopBarriers, 6},
                                           {entry->loopFences, 7}};
      for (auto [number, space] : columns)
        os << llvm::right_justify(std::to_string(number), space);
      os << "\n";
    }
}
