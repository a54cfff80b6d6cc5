//===- SaveBundle.h - Kernels for a machine without a compiler --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A bundle is a folder that contains kernels.ptx, kernels.json and, if a ptxas is available,
// kernels.cubin. This is an example of kernels.json:
//
//   {"chip": "sm_80", "kernels": [{"name": "fwd", "scratchBytes": 0,
//     "bindings": [{"dtype": "bf16", "shape": [2, 8], "out": false}, ...],
//     "launches": [{"entry": "fwd", "blocks": 16, "threads": 128, "sharedBytes": 65536}]}],
//    "entries": [{"name": "fwd", "registers": 168, "spillBytes": 0, ...}]}
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_KERNEL_TEST_SAVEBUNDLE_H
#define FSDP_KERNEL_TEST_SAVEBUNDLE_H

#include "fsdp/Codegen/Gpu/GpuImage.h"

/// Creates `folder`, and writes the bundle of `image` to this folder. `image` was compiled from
/// functions of `module`. After an error, prints the error and returns false.
bool saveBundle(const mlir::fsdp::GpuImage &image, mlir::ModuleOp module, llvm::StringRef folder);

#endif // FSDP_KERNEL_TEST_SAVEBUNDLE_H
