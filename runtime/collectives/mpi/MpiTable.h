/*===- MpiTable.h - The runtime's interface to MPI libraries ------*- C -*-===//
//
// MPI libraries differ in their binary interfaces, so the runtime links none of them. A module
// compiled with the installed MPI (lib/mpi/MpiModule.c) provides this table, whose types do not
// depend on the library.
//
// All functions return MPI's error code, 0 for success. One thread at a time may call them.
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
  fsdprt_mpi_handle no_request; /* a request that is always complete */
  int (*init)(int *rank, int *size, int *highest_tag);
  int (*finalize)(void);
  /* Creates a communicator of all ranks, which may be used when the request is complete. */
  int (*world)(fsdprt_mpi_handle *made, fsdprt_mpi_handle *request);
  /* Creates a communicator of `members`, which must all call it. The only function besides init and
   * finalize that waits for other processes. */
  int (*subgroup)(const int *members, int count, int tag, fsdprt_mpi_handle *made);
  int (*send)(fsdprt_mpi_handle over, const void *data, int bytes, int to, int tag,
              fsdprt_mpi_handle *request);
  int (*receive)(fsdprt_mpi_handle over, void *data, int bytes, int from, int tag,
                 fsdprt_mpi_handle *request);
  /* Start sums of f64 (`wide`) or f32. Source and target may be equal. */
  int (*reduce_scatter)(fsdprt_mpi_handle over, const void *source, void *target, int count,
                        int wide, fsdprt_mpi_handle *request);
  int (*all_reduce)(fsdprt_mpi_handle over, const void *source, void *target, int count, int wide,
                    fsdprt_mpi_handle *request);
  /* Sets `done` if all requests are complete. Complete requests become no_request. */
  int (*test)(fsdprt_mpi_handle *requests, int count, int *done);
  /* Cancels a receive. */
  int (*cancel)(fsdprt_mpi_handle *request);
  void (*explain)(int code, char *text, size_t capacity);
  void (*describe)(char *text, size_t capacity); /* the library and its version */
} fsdprt_mpi_table;

typedef const fsdprt_mpi_table *(*fsdprt_mpi_table_get_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_COLLECTIVES_MPI_MPITABLE_H */
