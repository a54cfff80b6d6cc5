/*===- launch_record.h - What a kernel's code was compiled for ----*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel function for a CPU does not check its bindings, so the manifest must launch the function
// only with the extent and sizes for which it was compiled. For each function k, the image has a
// data symbol "k.launch" of 64-bit words: the number of records, then the records. Each record is
//
//     extent, tile, shared bytes, worker bytes, number n of bindings, n least bytes of bindings
//
// A function that the compiler generates has one record. A handwritten one has a record per launch.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_LAUNCH_RECORD_H
#define FSDPRT_LAUNCH_RECORD_H

/* The data symbol of a function has the function's name with this suffix. */
#define FSDPRT_LAUNCH_SUFFIX ".launch"

#endif /* FSDPRT_LAUNCH_RECORD_H */
