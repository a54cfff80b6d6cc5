/*===- artifact_header.h - The first 128 bytes of a .fsdp file ----*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plain C without dependencies. The compiler, which writes these bytes, and the runtime, which
// checks them, share this file and the schema of the manifest (runtime/schema/artifact.fbs).
//
//     0        128 (64-byte aligned)         (4096)            (4096)    file_size
//     | header | manifest: FlatBuffer "FSDP" | image: ELF .so | values |
//
// All integers are little-endian. Offsets and sizes are in bytes from the beginning of the file.
// The image is a position-independent ELF shared object without undefined symbols, needed
// libraries, thread-local storage or initialisers. The image may be absent (offset and size 0) if
// no program launches a kernel. The values are initial values of parameters, at offsets given in
// the manifest; a file without them has offset and size 0 and version 2, which older readers
// accept. The gaps between the parts are zero. The hash covers the whole file, with zeros in place
// of the 32 bytes of the hash itself.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_ARTIFACT_HEADER_H
#define FSDPRT_ARTIFACT_HEADER_H

#include <stdint.h>

#define FSDPRT_ARTIFACT_MAGIC "FSDPMLIR" /* 8 bytes, without the terminating zero */
#define FSDPRT_ARTIFACT_VERSION 3u       /* raised when an old reader would misread the file */
#define FSDPRT_ARTIFACT_PLAIN_VERSION 2u /* oldest supported version: files without values */
#define FSDPRT_ARTIFACT_HEADER_SIZE 128u
#define FSDPRT_ARTIFACT_HASH_OFFSET 56u
#define FSDPRT_ARTIFACT_HASH_SIZE 32u
#define FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT 64u
#define FSDPRT_ARTIFACT_IMAGE_ALIGNMENT 4096u
#define FSDPRT_ARTIFACT_VALUES_ALIGNMENT 4096u /* Alignment of the section of values. */
#define FSDPRT_ARTIFACT_VALUE_ALIGNMENT 64u    /* Alignment of a parameter's values. */
/* Alignment of a buffer's offset and size in an arena. */
#define FSDPRT_BUFFER_ALIGNMENT 64u
/* Alignment of the offset at which the host arena begins, after the device arena. */
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
  uint64_t values_offset; /* from version 3 on; zero before */
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
