//===- Passes.td - Passes of Codegen -----------------------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PASSES_TD
#define FSDP_CODEGEN_PASSES_TD

include "fsdp/Options/StepOption.td"
include "mlir/Pass/PassBase.td"

def LowerKernelsPass : Pass<"fsdp-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Lower kernels on tensors to phase functions on buffers";
  let description = [{
    - Requires: kernels (`fsdp.kernel`) of the form of docs/explanation/pipeline.md §6.
    - Ensures: each kernel is one or more functions `(memrefs.., [shared,] begin, end, worker)`
      on memref, scf, vector, arith and math, with `fsdp.extent` and `fsdp.tile`; they run
      one after the other. Every split of [0, extent) at multiples of the tile gives the same bits.
    - Keeps: all other functions.
  }];
  let options = [StepOption<"targetCpu", "target-cpu", "std::string">];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels lowered">,
                    Statistic<"numPhases", "num-phases", "Phase functions made">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::vector::VectorDialect"];
}

def CompileKernelsPass : Pass<"fsdp-compile-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile the kernels of a plan, and write down the scratch that they need";
  let description = [{
    ```mlir
    module attributes {fsdp.kernel_scratch = {row_1 = array<i64: 0, 4096>}} // shared, of each worker
    ```

    The image itself is not in the IR: the driver keeps it for Package. By itself, in `fsdp-opt`, the pass only measures.

    - Requires: kernels (`fsdp.kernel`) of the form of docs/explanation/pipeline.md §6.
    - Ensures: `fsdp.kernel_scratch` on the module, for `fsdp-add-workspace`.
    - Keeps: everything else.
  }];
  let options = [StepOption<"target", "target", "std::string">,
                 StepOption<"targetCpu", "target-cpu", "std::string">];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels compiled or measured">,
                    Statistic<"imageBytes", "image-bytes", "Bytes of machine code">];
}

def KeepKernelsPass : Pass<"fsdp-keep-kernels", "::mlir::ModuleOp"> {
  let summary = "Drop everything but the kernels";
  let description = [{
    - Requires: nothing.
    - Ensures: the module holds its kernels (`fsdp.kernel`) alone.
    - Keeps: the kernels.
  }];
  let statistics = [Statistic<"numDropped", "num-dropped", "Operations dropped">];
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
