/*===- sha256.h - SHA-256 (FIPS 180-4) ----------------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares SHA-256 for the compiler and the runtime, in the library fsdp_common. Needs no function
// but memcpy.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_SHA256_H
#define FSDPRT_SHA256_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fsdprt_sha256 {
  uint32_t state[8];
  uint64_t bytes;    /* hashed so far */
  uint8_t block[64]; /* the last `bytes` % 64 bytes, not hashed yet */
} fsdprt_sha256;

void fsdprt_sha256_begin(fsdprt_sha256 *hash);
void fsdprt_sha256_update(fsdprt_sha256 *hash, const void *data, size_t size);
void fsdprt_sha256_end(fsdprt_sha256 *hash, uint8_t digest[32]);

/* Computes the hash of a whole artifact in memory, with the header's field sha256 taken as zeros.
 * `size` is at least FSDPRT_ARTIFACT_HEADER_SIZE. */
void fsdprt_sha256_artifact(const void *file, size_t size, uint8_t digest[32]);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_SHA256_H */
