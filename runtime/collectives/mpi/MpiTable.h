/*===- MpiTable.h - The runtime's interface to MPI libraries ------*- C -*-===//
//
// The runtime links no MPI library, because the binary interfaces of MPI libraries differ. A module
// that is compiled with the installed MPI library (MpiModule.c) provides this table. The types of
// its functions do not depend on the MPI library.
//
// An int that a function returns is an error code of MPI. It is 0 if the call has succeeded. The
// functions of the table must not be called by several threads at the same time.
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
  fsdprt_mpi_handle no_request; /* request that is always complete */
  int (*init)(int *rank, int *size, int *highest_tag);
  int (*finalize)(void);
  /* Creates a communicator of all ranks. It may be used after the request is complete. */
  int (*world)(fsdprt_mpi_handle *made, fsdprt_mpi_handle *request);
  /* Creates a communicator of `members`. All members must call subgroup(). Only init(), finalize()
   * and subgroup() wait for other processes. */
  int (*subgroup)(const int *members, int count, int tag, fsdprt_mpi_handle *made);
  int (*send)(fsdprt_mpi_handle over, const void *data, int bytes, int to, int tag,
              fsdprt_mpi_handle *request);
  int (*receive)(fsdprt_mpi_handle over, void *data, int bytes, int from, int tag,
                 fsdprt_mpi_handle *request);
  /* reduce_scatter() and all_reduce() start sums of f64 values if `wide` is not 0, and otherwise
   * of f32 values. `source` and `target` may be equal. */
  int (*reduce_scatter)(fsdprt_mpi_handle over, const void *source, void *target, int count,
                        int wide, fsdprt_mpi_handle *request);
  int (*all_reduce)(fsdprt_mpi_handle over, const void *source, void *target, int count, int wide,
                    fsdprt_mpi_handle *request);
  /* Sets `done` to 1 if all requests are complete. Complete requests become no_request. */
  int (*test)(fsdprt_mpi_handle *requests, int count, int *done);
  /* Cancels a receive. */
  int (*cancel)(fsdprt_mpi_handle *request);
  void (*explain)(int code, char *text, size_t capacity);
  void (*describe)(char *text, size_t capacity); /* writes the name and version of the library */
} fsdprt_mpi_table;

typedef const fsdprt_mpi_table *(*fsdprt_mpi_table_get_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_COLLECTIVES_MPI_MPITABLE_H */
