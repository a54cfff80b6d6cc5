//===- Gemm.h - Lowering of contraction kernels for CPUs --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_CPU_GEMM_GEMM_H
#define FSDP_LIB_CODEGEN_CPU_GEMM_GEMM_H

#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/CpuTarget.h"

namespace mlir::fsdp {

/// Returns true if lowerContractKernel() supports `kernel`. Does not change the kernel.
bool handlesContractKernel(func::FuncOp kernel, const CpuTarget &target);

/// Lowers a kernel that consists of one linalg.contract and of elementwise ops after it. The
/// comment of lowerKernel() describes the result.
LogicalResult lowerContractKernel(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_CPU_GEMM_GEMM_H
