/*===- launch_record.h - What a kernel's code was compiled for ----*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Code for a CPU accesses its bindings without checks, so the manifest must launch a function only
// with the extent and the sizes for which it was compiled. For each function k, the image has an
// object "k.launch" of 64-bit words: the number of records, then the records. Each record is
//
//     extent, tile, shared bytes, worker bytes, number of bindings n, n least sizes of bindings
//
// A function that the compiler generates has one record. A handwritten function has one per launch.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_LAUNCH_RECORD_H
#define FSDPRT_LAUNCH_RECORD_H

/* Suffix of the name of a function k in the name of its object. */
#define FSDPRT_LAUNCH_SUFFIX ".launch"

#endif /* FSDPRT_LAUNCH_RECORD_H */
