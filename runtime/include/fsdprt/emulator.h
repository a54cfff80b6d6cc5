/*===- emulator.h - Sessions on emulated GPUs ---------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library fsdprt_emulated_device, beside the runtime: a program that links it and calls this
// function has sessions with the device "emulate".
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_EMULATOR_H
#define FSDPRT_EMULATOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first such session is made; more than once is as good as once. */
void fsdprt_register_emulator(void);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_EMULATOR_H */
