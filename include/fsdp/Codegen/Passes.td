//===- Passes.td - Passes of Codegen -----------------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PASSES_TD
#define FSDP_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerKernelsPass : Pass<"fsdp-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Lower kernels on tensors to phase functions on buffers";
  let description = [{
    - Requires: kernels (`fsdp.kernel`) of the form of docs/Pipeline.md §6.
    - Ensures: each kernel is one or more functions `(memrefs.., [shared,] begin, end, worker)`
      on memref, scf, vector, arith and math, with `fsdp.extent` and `fsdp.tile`; they run
      one after the other. Every split of [0, extent) at multiples of the tile gives the same bits.
    - Keeps: all other functions.
  }];
  let options = [Option<"targetCpu", "target-cpu", "std::string", /*default=*/"\"native\"",
                        "The CPU to lower for: native, x86-64-v3, or a name that LLVM knows.">];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels lowered">,
                    Statistic<"numPhases", "num-phases", "Phase functions made">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::vector::VectorDialect"];
}

def VerifyFloatContractPass : Pass<"fsdp-verify-float-contract"> {
  let summary = "Check that no fast-math flag is left";
  let description = [{
    - Requires: nothing.
    - Ensures: no operation has a fast-math flag, so that each rounds as it is written and
      neither vector width nor CPU changes a bit.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Operations that could have flags">];
}

#endif // FSDP_CODEGEN_PASSES_TD
