/*===- emulator.h - Sessions on emulated GPUs ---------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares a function of the library fsdprt_emulated_device, which is separate from the runtime. A
// program can use the device "emulate" if it links this library and calls the function.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_EMULATOR_H
#define FSDPRT_EMULATOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the device "emulate". Must be called before the first session on this device is
 * created. Further calls do nothing. */
void fsdprt_register_emulator(void);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_EMULATOR_H */
