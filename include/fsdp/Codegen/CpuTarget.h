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
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
}

namespace mlir::fsdp {

/// The method by which a CPU computes products of bf16 matrices.
enum class Bf16Products {
  Widened, ///< fused multiply-adds in f32 on operands converted to f32
  /// The instruction vdpbf16ps. The results are equal to those of `Widened`, except that denormals
  /// become 0.
  Dot,
  Tiles,    ///< tdpbf16ps of AMX
  TileLoops ///< loops with the arithmetic of tdpbf16ps, for tests on any CPU
};

/// Describes a CPU: its instruction set (x86-64-v3 with AVX2 and FMA, or x86-64-v4 with AVX-512),
/// the method for bf16 products, and the scheduling model for generated code. Results have the same
/// bits on every CPU with the same instruction set.
struct CpuTarget {
  std::string triple = "x86_64-unknown-linux-gnu";
  /// The instruction set: x86-64-v3 or x86-64-v4.
  std::string cpu;
  /// CPU features that the code uses in addition to those of `cpu`, as LLVM spells them.
  std::string features;
  /// The CPU whose scheduling model LLVM uses.
  std::string tune;
  /// Width in bits of the widest vector registers that the code uses: 256 or 512.
  unsigned vectorBits = 256;
  Bf16Products bf16 = Bf16Products::Widened;
  /// True if a core copies data between its L2 cache and the shared cache slowly in comparison with
  /// its multiply-adds. Kernels then hide more reads from the shared cache behind products.
  bool hasDistantCache = false;
  /// The flags that /proc/cpuinfo of a machine must list if the code is to run on it.
  std::vector<std::string> isa;

  bool hasAvx512() const { return vectorBits == 512; }
  /// Returns true if products of bf16 have the arithmetic of tdpbf16ps. Contractions of f32 then
  /// consist of such products, too.
  bool usesTiles() const { return bf16 == Bf16Products::Tiles || bf16 == Bf16Products::TileLoops; }

  /// Returns the target for `name`. The name is "native" or empty for this machine, the name of a
  /// CPU that LLVM knows (x86-64-v3, znver4, sapphirerapids), or "amx-loops" for TileLoops. Emits
  /// an error at `loc` if the name is unknown or the CPU lacks AVX2 or FMA.
  static FailureOr<CpuTarget> get(StringRef name, Location loc);
  /// Returns the same as get(). If get() would fail, returns nothing and sets `why` to the error.
  static std::optional<CpuTarget> find(StringRef name, std::string &why);

  /// Creates a generator of position-independent code that does not fuse multiply and add.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_CPUTARGET_H
