/*===- MpiModule.c - The table of MpiTable.h, by the MPI at hand --*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This file is compiled to fsdprt_mpi.so if an MPI library is installed. The runtime loads this
// module when the ranks communicate over MPI. The module calls only functions of MPI 3.1.
//
//===----------------------------------------------------------------------===*/

#include "collectives/mpi/MpiTable.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(fsdprt_mpi_handle), "a request fits a handle");
_Static_assert(sizeof(MPI_Comm) <= sizeof(fsdprt_mpi_handle), "a communicator fits a handle");

static fsdprt_mpi_handle fromRequest(MPI_Request request) {
  fsdprt_mpi_handle handle = 0;
  memcpy(&handle, &request, sizeof request);
  return handle;
}

static MPI_Request toRequest(fsdprt_mpi_handle handle) {
  MPI_Request request;
  memcpy(&request, &handle, sizeof request);
  return request;
}

static MPI_Comm toComm(fsdprt_mpi_handle handle) {
  MPI_Comm comm;
  memcpy(&comm, &handle, sizeof comm);
  return comm;
}

static int init(int *rank, int *size, int *highestTag) {
  int provided = 0, found = 0, *most = NULL;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
  if (code != MPI_SUCCESS)
    return code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  *highestTag = found ? *most : 32767;
  return provided < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int finalize(void) { return MPI_Finalize(); }

static int world(fsdprt_mpi_handle *made, fsdprt_mpi_handle *request) {
  /* MPI writes to `made` when the request completes, so `made` must exist until then. */
  MPI_Request pending;
  *made = 0;
  int code = MPI_Comm_idup(MPI_COMM_WORLD, (MPI_Comm *)made, &pending);
  *request = fromRequest(pending);
  return code;
}

static int subgroup(const int *members, int count, int tag, fsdprt_mpi_handle *made) {
  MPI_Group all, some;
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_Comm_group(MPI_COMM_WORLD, &all);
  if (code == MPI_SUCCESS)
    code = MPI_Group_incl(all, count, members, &some);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &comm);
  if (code != MPI_SUCCESS)
    return code;
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  *made = 0;
  memcpy(made, &comm, sizeof comm);
  return MPI_SUCCESS;
}

static int send(fsdprt_mpi_handle over, const void *data, int bytes, int to, int tag,
                fsdprt_mpi_handle *request) {
  MPI_Request pending = MPI_REQUEST_NULL;
  int code = MPI_Isend(data, bytes, MPI_BYTE, to, tag, toComm(over), &pending);
  *request = fromRequest(pending);
  return code;
}

static int receive(fsdprt_mpi_handle over, void *data, int bytes, int from, int tag,
                   fsdprt_mpi_handle *request) {
  MPI_Request pending = MPI_REQUEST_NULL;
  int code = MPI_Irecv(data, bytes, MPI_BYTE, from, tag, toComm(over), &pending);
  *request = fromRequest(pending);
  return code;
}

static int reduceScatter(fsdprt_mpi_handle over, const void *source, void *target, int count,
                         int wide, fsdprt_mpi_handle *request) {
  MPI_Request pending = MPI_REQUEST_NULL;
  int code =
      MPI_Ireduce_scatter_block(source == target ? MPI_IN_PLACE : source, target, count,
                                wide ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, toComm(over), &pending);
  *request = fromRequest(pending);
  return code;
}

static int allReduce(fsdprt_mpi_handle over, const void *source, void *target, int count, int wide,
                     fsdprt_mpi_handle *request) {
  MPI_Request pending = MPI_REQUEST_NULL;
  int code = MPI_Iallreduce(source == target ? MPI_IN_PLACE : source, target, count,
                            wide ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, toComm(over), &pending);
  *request = fromRequest(pending);
  return code;
}

static int test(fsdprt_mpi_handle *requests, int count, int *done) {
  *done = 1;
  for (int i = 0; i < count; ++i) {
    MPI_Request pending = toRequest(requests[i]);
    int flag = 1;
    int code =
        pending == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
    requests[i] = fromRequest(pending);
    if (code != MPI_SUCCESS)
      return code;
    *done &= flag;
  }
  return MPI_SUCCESS;
}

static int cancel(fsdprt_mpi_handle *request) {
  MPI_Request pending = toRequest(*request);
  if (pending == MPI_REQUEST_NULL)
    return MPI_SUCCESS;
  int code = MPI_Cancel(&pending);
  if (code == MPI_SUCCESS)
    code = MPI_Request_free(&pending);
  *request = fromRequest(MPI_REQUEST_NULL);
  return code;
}

static void explain(int code, char *text, size_t capacity) {
  char whole[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS)
    length = snprintf(whole, sizeof whole, "error %d", code);
  whole[length] = '\0';
  snprintf(text, capacity, "%s", whole);
}

static void describe(char *text, size_t capacity) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  MPI_Get_library_version(whole, &length);
  whole[strcspn(whole, ",\n")] = '\0';
  snprintf(text, capacity, "%s", whole);
}

__attribute__((visibility("default"))) const fsdprt_mpi_table *fsdprt_mpi_table_get(void);

const fsdprt_mpi_table *fsdprt_mpi_table_get(void) {
  static fsdprt_mpi_table table = {FSDPRT_MPI_TABLE_VERSION,
                                   0,
                                   init,
                                   finalize,
                                   world,
                                   subgroup,
                                   send,
                                   receive,
                                   reduceScatter,
                                   allReduce,
                                   test,
                                   cancel,
                                   explain,
                                   describe};
  table.no_request = fromRequest(MPI_REQUEST_NULL);
  return &table;
}
