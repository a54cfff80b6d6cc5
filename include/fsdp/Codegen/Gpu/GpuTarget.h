//===- GpuTarget.h - The GPU that kernels are compiled for ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPU_GPUTARGET_H
#define FSDP_CODEGEN_GPU_GPUTARGET_H

#include "fsdp/Options/Options.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace mlir::fsdp {

/// A chip, and what a block of threads may take of it.
struct GpuTarget {
  std::string chip;        ///< sm_80, sm_90a, sm_100a
  unsigned ptxVersion;     ///< 71: PTX ISA 7.1
  int64_t sharedPerBlock;  ///< bytes of shared memory, at most
  int64_t sharedPerSm;     ///< of all blocks on a multiprocessor, with `sharedReserved` for each
  int64_t registersPerSm;  ///< of 32 bits
  int64_t multiprocessors; ///< of the largest such chip
  int64_t registersPerThread = 255;
  int64_t sharedReserved = 1024;
  /// Auto is kernels of our own: there is one for every contraction, they run wherever the artifact
  /// does, emulated as well, and nothing is known yet of where a library is faster on a GPU.
  GemmSource gemm = GemmSource::Auto;
  int64_t gemmWorkspace = 0; ///< bytes of scratch for a library's product

  /// Whether warpgroups multiply (wgmma).
  bool hasWarpgroups() const { return chip == "sm_90a"; }
  /// Whether `name` is that of a chip; "cpu" is not.
  static bool isKnown(StringRef name);
  /// The names, for messages: "sm_80, sm_90a or sm_100a".
  static std::string getNames();
  /// Returns the chip that the options name, with what they say of products. Emits an error at
  /// `loc` when the chip is unknown.
  static FailureOr<GpuTarget> get(const CodegenOptions &options, Location loc);

  /// A code generator for PTX, or null when this LLVM has none.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_GPUTARGET_H
