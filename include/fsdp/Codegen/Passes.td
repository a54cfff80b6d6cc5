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
    A kernel becomes one or more phase functions, which run one after another. A phase function
    has the arguments `(memrefs.., [shared,] begin, end, worker)`.

    - Requires: kernels (`fsdp.kernel`) in the form of docs/explanation/pipeline.md §6.
    - Ensures: each phase function consists of ops of memref, scf, vector, arith and math, and has
      the attributes `fsdp.extent` and `fsdp.tile`. The results have the same bits for every split
      of the range [0, extent) at multiples of the tile.
    - Keeps: all other functions.
  }];
  let options = [StepOption<"targetCpu", "target-cpu", "std::string">];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels lowered">,
                    Statistic<"numPhases", "num-phases", "Phase functions created">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::vector::VectorDialect"];
}

def CompileKernelsPass : Pass<"fsdp-compile-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile the kernels of a plan and record the scratch memory they need";
  let description = [{
    ```mlir
    module attributes {fsdp.kernel_scratch = {row_1 = array<i64: 0, 4096>}} // bytes: shared, per worker
    ```

    The machine code is not in the IR: the driver keeps it for the stage Package. In `fsdp-opt`,
    this pass only measures the scratch memory.

    - Requires: kernels (`fsdp.kernel`) in the form of docs/explanation/pipeline.md §6.
    - Ensures: the module has `fsdp.kernel_scratch`, which `fsdp-add-workspace` reads.
    - Keeps: everything else.
  }];
  let options = [StepOption<"target", "target", "std::string">,
                 StepOption<"targetCpu", "target-cpu", "std::string">];
  let statistics = [Statistic<"numKernels", "num-kernels", "Kernels compiled or measured">,
                    Statistic<"imageBytes", "image-bytes", "Size of the machine code, in bytes">];
}

def KeepKernelsPass : Pass<"fsdp-keep-kernels", "::mlir::ModuleOp"> {
  let summary = "Delete everything except the kernels";
  let description = [{
    - Requires: nothing.
    - Ensures: the module contains only its kernels (`fsdp.kernel`).
    - Keeps: the kernels.
  }];
  let statistics = [Statistic<"numDropped", "num-dropped", "Operations deleted">];
}

def VerifyFloatContractPass : Pass<"fsdp-verify-float-contract"> {
  let summary = "Check that no operation has a fast-math flag";
  let description = [{
    - Requires: nothing.
    - Ensures: no operation has a fast-math flag. Therefore each operation rounds its own result,
      and no bit of a result depends on the vector width or on the CPU.
    - Keeps: the IR.
  }];
  let statistics = [Statistic<"numChecked", "num-checked", "Operations that can carry fast-math flags">];
}

#endif // FSDP_CODEGEN_PASSES_TD
