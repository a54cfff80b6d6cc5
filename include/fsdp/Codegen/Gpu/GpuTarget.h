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

/// A GPU chip, with its limits per block of threads and per multiprocessor.
struct GpuTarget {
  std::string chip;        ///< sm_80, sm_90a, sm_100a
  unsigned ptxVersion;     ///< PTX ISA version: 71 means 7.1
  int64_t sharedPerBlock;  ///< shared memory that one block may use, in bytes
  int64_t sharedPerSm;     ///< shared memory per multiprocessor, in bytes
  int64_t registersPerSm;  ///< number of 32-bit registers of a multiprocessor
  int64_t multiprocessors; ///< number of multiprocessors of the largest GPU with this chip
  int64_t registersPerThread = 255;
  /// Shared memory that the system reserves in each block, in bytes.
  int64_t sharedReserved = 1024;
  /// Selects whether generated kernels or a library computes matrix products. `Auto` selects
  /// generated kernels. These kernels support every contraction, the emulator can run them, and the
  /// artifact then needs no library on the machine where it runs. It is not yet known for which
  /// shapes a library is faster.
  GemmSource gemm = GemmSource::Auto;
  int64_t gemmWorkspace = 0; ///< size of the workspace for a library's product, in bytes
  F32Products f32Products = F32Products::Exact;

  /// Returns true if the chip has warpgroup matrix instructions (wgmma).
  bool hasWarpgroups() const { return chip == "sm_90a"; }
  /// Returns true if `name` is a supported chip. Returns false for "cpu".
  static bool isKnown(StringRef name);
  /// Returns the list of supported chips, as text for messages: "sm_80, sm_90a or sm_100a".
  static std::string getNames();
  /// Returns the chip that the options name. Sets the members `gemm`, `gemmWorkspace` and
  /// `f32Products` of the chip as the options demand. Emits an error at `loc` if the chip is
  /// unknown.
  static FailureOr<GpuTarget> get(const CodegenOptions &options, Location loc);

  /// Creates a code generator for PTX. Returns null if LLVM was built without NVPTX.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPU_GPUTARGET_H
