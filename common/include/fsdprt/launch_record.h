/*===- launch_record.h - What a kernel's code was compiled for ----*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel function for a CPU does not check its bindings. The manifest must therefore launch the
// function only with the extent and with buffer sizes for which the function was compiled. For each
// function k, the image has a data symbol "k.launch", which consists of 64-bit words: first the
// number of records, then the records. Each record is
//
//     extent, tile, shared bytes, worker bytes, number n of bindings, n least bytes of bindings
//
// A function that the compiler generates has only one record. A function of a handwritten kernel
// has a record for each launch.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_LAUNCH_RECORD_H
#define FSDPRT_LAUNCH_RECORD_H

/* The name of the data symbol is the name of the function followed by this suffix. */
#define FSDPRT_LAUNCH_SUFFIX ".launch"

#endif /* FSDPRT_LAUNCH_RECORD_H */
