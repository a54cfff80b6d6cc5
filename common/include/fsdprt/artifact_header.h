/*===- artifact_header.h - The first 128 bytes of a .fsdp file ----*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler writes the header and the runtime checks it. Both include this file (plain C without
// dependencies) and use the schema of the manifest (runtime/schema/artifact.fbs).
//
//     0        128 (64-byte aligned)         (4096)            (4096)    file_size
//     | header | manifest: FlatBuffer "FSDP" | image: ELF .so | values |
//
// All integers are little-endian. Offsets and sizes are in bytes from the beginning of the file.
// The image is an ELF shared object with position-independent code. It has no undefined symbols,
// needs no other libraries, and has neither thread-local storage nor initialisers. If no program
// launches a kernel, the image may be absent. Its offset and size are then 0. The section of values
// contains initial values of parameters. The manifest states the offset of each parameter's values.
// If a file has no values, the offset and the size of this section are 0. A file has the oldest
// version whose readers understand it: 2, or 3 if it has values, or 4 if its mesh has an axis
// "tensor". The gaps between header, manifest, image and values are zero. The hash is computed over
// the whole file. For this computation, the bytes of the field sha256 are taken as zeros.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_ARTIFACT_HEADER_H
#define FSDPRT_ARTIFACT_HEADER_H

#include <stdint.h>

#define FSDPRT_ARTIFACT_MAGIC "FSDPMLIR" /* 8 bytes, without the terminating zero */
#define FSDPRT_ARTIFACT_VERSION 4u /* raise this version if old readers would misread new files */
#define FSDPRT_ARTIFACT_VALUES_VERSION 3u /* version of files with values */
#define FSDPRT_ARTIFACT_PLAIN_VERSION 2u  /* version of files without values, the oldest version */
#define FSDPRT_ARTIFACT_HEADER_SIZE 128u
#define FSDPRT_ARTIFACT_HASH_OFFSET 56u
#define FSDPRT_ARTIFACT_HASH_SIZE 32u
#define FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT 64u
#define FSDPRT_ARTIFACT_IMAGE_ALIGNMENT 4096u
#define FSDPRT_ARTIFACT_VALUES_ALIGNMENT 4096u /* Alignment of values_offset. */
#define FSDPRT_ARTIFACT_VALUE_ALIGNMENT 64u    /* Alignment of the values of each parameter. */
/* Alignment of the offset and of the size of a buffer in an arena. */
#define FSDPRT_BUFFER_ALIGNMENT 64u
/* The host arena begins after the device arena, at an offset with this alignment. */
#define FSDPRT_HOST_ARENA_ALIGNMENT 4096u

typedef struct fsdprt_artifact_header {
  char magic[8];
  uint32_t version;
  uint32_t header_size; /* 128 */
  uint64_t file_size;
  uint64_t manifest_offset;
  uint64_t manifest_size;
  uint64_t image_offset;
  uint64_t image_size;
  uint8_t sha256[32];
  uint64_t values_offset; /* zero in version 2 */
  uint64_t values_size;
  uint8_t reserved[24]; /* zero */
} fsdprt_artifact_header;

#ifdef __cplusplus
static_assert(sizeof(fsdprt_artifact_header) == FSDPRT_ARTIFACT_HEADER_SIZE,
              "the header has no padding");
#else
_Static_assert(sizeof(fsdprt_artifact_header) == FSDPRT_ARTIFACT_HEADER_SIZE,
               "the header has no padding");
#endif

#endif /* FSDPRT_ARTIFACT_HEADER_H */
