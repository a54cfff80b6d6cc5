/*===- CApiTest.c - The C interface from C ------------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This file is compiled as C, to check that the headers are valid C. The argument of the test
// program is a toy artifact for 2 ranks.
//
//===----------------------------------------------------------------------===*/

#include "fsdprt/artifact_header.h"
#include "fsdprt/fsdprt.h"
#include "fsdprt/sha256.h"
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: " #condition ": %s\n", __FILE__, __LINE__, error.message);           \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

static int32_t countBytes(void *user, const char *text, size_t size) {
  *(size_t *)user += size;
  return text[0] == '\0';
}

/* An older caller would pass a structure that has only the first two members. */
typedef struct old_session_info {
  size_t struct_size;
  uint64_t ranks;
  uint64_t canary;
} old_session_info;

static int32_t countRuns(void *user, const fsdprt_profile_entry *entry) {
  *(uint64_t *)user += entry->runs;
  return 0;
}

static int train(fsdprt_session *session) {
  fsdprt_error error = {sizeof error, FSDPRT_OK, ""};
  float block[FSDPRT_BLOCK_SIZE], first = 0;
  CHECK(fsdprt_session_run(session, "init", &error) == FSDPRT_OK);
  for (int step = 0; step < 5; ++step) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      int64_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 8 + rank};
      CHECK(fsdprt_session_write_input(session, rank, 0, 0, ids, sizeof ids, &error) == FSDPRT_OK);
      CHECK(fsdprt_session_write_input(session, rank, 1, 0, ids, sizeof ids, &error) == FSDPRT_OK);
      CHECK(fsdprt_session_read_block(session, rank, block, &error) == FSDPRT_OK);
      block[FSDPRT_BLOCK_LR] = 0.1f;
      CHECK(fsdprt_session_write_block(session, rank, block, &error) == FSDPRT_OK);
    }
    CHECK(fsdprt_session_run(session, "step", &error) == FSDPRT_OK);
    CHECK(fsdprt_session_read_block(session, 1, block, &error) == FSDPRT_OK);
    first = step == 0 ? block[FSDPRT_BLOCK_LOSS] : first;
  }
  CHECK(block[FSDPRT_BLOCK_LOSS] < first);
  CHECK(block[FSDPRT_BLOCK_STEP] == 5);
  return 0;
}

int main(int argc, char **argv) {
  fsdprt_error error = {sizeof error, FSDPRT_OK, ""};
  fsdprt_artifact *artifact = NULL;
  if (argc != 2 || argv[1][0] == '-') {
    puts("fsdprt-c-test TOY.fsdp: uses the C interface on a toy model for 2 ranks, which "
         "fsdprt-toy writes");
    return argc == 2 ? 0 : 2;
  }
  CHECK(fsdprt_abi_version() >> 16 == FSDPRT_ABI_MAJOR);
  CHECK(fsdprt_artifact_open("/no/such/file", &artifact, &error) == FSDPRT_BAD_INPUT);
  CHECK(strstr(error.message, "/no/such/file: cannot open the artifact") == error.message);
  CHECK(fsdprt_artifact_open_memory("x", 1, "x.fsdp", &artifact, &error) == FSDPRT_BAD_INPUT);
  CHECK(fsdprt_artifact_open_memory("x", 1, "x.fsdp", &artifact, NULL) == FSDPRT_BAD_INPUT);
  CHECK(fsdprt_artifact_open(argv[1], &artifact, &error) == FSDPRT_OK);

  fsdprt_artifact_info info = {0};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact, &info);
  CHECK(info.ranks == 2 && info.params == 2 && info.parameter_elements == 102 && info.lr == 0.1);
  CHECK(fsdprt_artifact_has_program(artifact, "step") &&
        !fsdprt_artifact_has_program(artifact, "stop"));
  fsdprt_param_info param = {0};
  param.struct_size = sizeof param;
  CHECK(fsdprt_artifact_get_param(artifact, 0, &param) == FSDPRT_OK);
  CHECK(strcmp(param.name, "w") == 0 && param.rank == 2 && param.shape[1] == 7 &&
        param.elements == 91);
  CHECK(fsdprt_artifact_get_param(artifact, 2, &param) == FSDPRT_BAD_INPUT);
  size_t dumped = 0;
  CHECK(fsdprt_artifact_dump(artifact, countBytes, &dumped, &error) == FSDPRT_OK && dumped > 1000);

  fsdprt_session_options options = {0};
  options.struct_size = sizeof options;
  fsdprt_session *session = NULL;
  options.ranks = 7;
  CHECK(fsdprt_session_create(artifact, &options, &session, &error) == FSDPRT_BAD_INPUT);
  options.ranks = 2;
  options.seed = 1;
  CHECK(fsdprt_session_create(artifact, &options, &session, &error) == FSDPRT_OK);
  old_session_info old = {offsetof(old_session_info, canary), 0, 42};
  fsdprt_session_get_info(session, (fsdprt_session_info *)&old);
  CHECK(old.ranks == 2 && old.canary == 42);
  int result = train(session);
  uint64_t runs = 0, total = 0;
  CHECK(fsdprt_session_visit_profile(session, countRuns, &runs, &total, &error) ==
        FSDPRT_BAD_INPUT);
  fsdprt_session_destroy(session);
  options.profile = 1;
  CHECK(fsdprt_session_create(artifact, &options, &session, &error) == FSDPRT_OK);
  result += train(session);
  CHECK(fsdprt_session_visit_profile(session, countRuns, &runs, &total, &error) == FSDPRT_OK);
  CHECK(runs == 5 * 10 && total > 0); /* each step runs 5 kernels and 5 collectives */
  CHECK(fsdprt_session_clear_profile(session, &error) == FSDPRT_OK);
  CHECK(fsdprt_session_visit_profile(session, countRuns, &runs, NULL, &error) == FSDPRT_OK &&
        runs == 50);
  fsdprt_session_destroy(session);
  fsdprt_artifact_close(artifact);
  return result;
}
