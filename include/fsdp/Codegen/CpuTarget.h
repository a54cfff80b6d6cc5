//===- CpuTarget.h - The CPU that kernels are compiled for ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_CPUTARGET_H
#define FSDP_CODEGEN_CPUTARGET_H

#include "mlir/IR/Location.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
}

namespace mlir::fsdp {

/// One of two instruction sets (x86-64-v3: AVX2 and FMA; x86-64-v4: AVX-512),
/// with bf16 dot products where the CPU has them, scheduled for a given CPU.
/// Codes for the same set are the same for every CPU that has it.
struct CpuTarget {
  std::string triple = "x86_64-unknown-linux-gnu";
  /// The instruction set: x86-64-v3 or x86-64-v4.
  std::string cpu;
  /// Features beyond it, in LLVM's spelling.
  std::string features;
  /// The CPU whose scheduling model is used.
  std::string tune;
  /// Bits of the widest register in use: 256 or 512.
  unsigned vectorBits = 256;
  /// AVX512-BF16: vdpbf16ps.
  bool hasBf16Dot = false;
  /// What must stand in the flags of /proc/cpuinfo.
  std::vector<std::string> isa;

  bool hasAvx512() const { return vectorBits == 512; }

  /// The target for `name`: "native" (or empty) is this machine, otherwise a name
  /// that LLVM knows (x86-64-v3, znver4, sapphirerapids). Emits an error at `loc`
  /// when it is unknown or has no AVX2 and FMA.
  static FailureOr<CpuTarget> get(StringRef name, Location loc);

  /// A code generator for it (position-independent, no fusing of multiply and add).
  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CPUTARGET_H
