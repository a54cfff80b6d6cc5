/*===- open_mpi.c - Bandwidth of MPI's own collectives ------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `mpirun -n 2 cpu_collectives_open_mpi` measures MPI_Allgather and MPI_Reduce_scatter_block, and
// prints rows in the format of cpu_collectives.cpp.
//
//===----------------------------------------------------------------------===*/

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static const long sizes[] = {1, 4, 16, 64, 256};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *whole = malloc(256l << 20), *piece = malloc(128l << 20);
  memset(whole, 0, 256l << 20);
  memset(piece, 0, 128l << 20);
  for (int kind = 0; kind < 2; ++kind)
    for (int s = 0; s < 5; ++s) {
      long bytes = sizes[s] << 20;
      int count = (int)(bytes / 8);
      long rounds = (long)(0.4 * 4e9 / (double)bytes);
      rounds = rounds < 5 ? 5 : rounds > 400 ? 400 : rounds;
      double best = 1e9;
      for (long round = 0; round < rounds; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (kind == 0)
          MPI_Allgather(piece, count, MPI_FLOAT, whole, count, MPI_FLOAT, MPI_COMM_WORLD);
        else
          MPI_Reduce_scatter_block(whole, piece, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double seconds = MPI_Wtime() - start;
        best = seconds < best ? seconds : best;
      }
      if (rank == 0)
        printf("%s %ld %.3f\n", kind == 0 ? "all_gather" : "reduce_scatter", sizes[s],
               (double)bytes / best * 1e-9);
    }
  MPI_Finalize();
  return 0;
}
