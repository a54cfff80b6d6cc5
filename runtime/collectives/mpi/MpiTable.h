/*===- MpiTable.h - What the runtime needs of an MPI library ------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MPI libraries differ in their binary interfaces, so the runtime links none. A module that is
// compiled with the MPI at hand (lib/mpi/MpiModule.c) gives it this table, whose types are the same
// for all.
//
// All functions return MPI's error code, 0 when fine. One thread at a time may call them.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_COLLECTIVES_MPI_MPITABLE_H
#define FSDPRT_COLLECTIVES_MPI_MPITABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FSDPRT_MPI_TABLE_VERSION 1u
#define FSDPRT_MPI_TABLE_NAME "fsdprt_mpi_table_get"

/* A communicator or a request. */
typedef uint64_t fsdprt_mpi_handle;

typedef struct fsdprt_mpi_table {
  uint32_t version;
  fsdprt_mpi_handle no_request; /* is done, whenever it is asked for */
  int (*init)(int *rank, int *size, int *highest_tag);
  int (*finalize)(void);
  /* A communicator of all ranks; to be used when the request is done. */
  int (*world)(fsdprt_mpi_handle *made, fsdprt_mpi_handle *request);
  /* One of some ranks; each of them calls it. The only call that waits for others, beside init and
   * finalize. */
  int (*subgroup)(const int *members, int count, int tag, fsdprt_mpi_handle *made);
  int (*send)(fsdprt_mpi_handle over, const void *data, int bytes, int to, int tag,
              fsdprt_mpi_handle *request);
  int (*receive)(fsdprt_mpi_handle over, void *data, int bytes, int from, int tag,
                 fsdprt_mpi_handle *request);
  /* Sums of f64 (`wide`) or f32; source and target may be the same. */
  int (*reduce_scatter)(fsdprt_mpi_handle over, const void *source, void *target, int count,
                        int wide, fsdprt_mpi_handle *request);
  int (*all_reduce)(fsdprt_mpi_handle over, const void *source, void *target, int count, int wide,
                    fsdprt_mpi_handle *request);
  /* Sets `done` when all of them are; those that are become no_request. */
  int (*test)(fsdprt_mpi_handle *requests, int count, int *done);
  /* Forgets a receive. */
  int (*cancel)(fsdprt_mpi_handle *request);
  void (*explain)(int code, char *text, size_t capacity);
  void (*describe)(char *text, size_t capacity); /* the library and its version */
} fsdprt_mpi_table;

typedef const fsdprt_mpi_table *(*fsdprt_mpi_table_get_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_COLLECTIVES_MPI_MPITABLE_H */
