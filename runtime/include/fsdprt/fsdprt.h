/*===- fsdprt.h - The runtime's C interface -----------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   artifact = fsdprt_artifact_open("gpt.fsdp")      checked in full, or refused
//   session  = fsdprt_session_create(artifact, ...)  arenas, threads, collectives
//   fsdprt_session_run(session, "init")
//   each step: fsdprt_session_write_input per rank, fsdprt_session_write_block (lr),
//              fsdprt_session_run(session, "step"), fsdprt_session_read_block
//   fsdprt_session_destroy, fsdprt_artifact_close
//
// Rules.
// - Plain C; no exception crosses. A call that can fail returns a status and fills
//   the caller's fsdprt_error with text (where, what was expected, what was found).
// - The first member of every struct is its size as the caller knows it. Members
//   are only ever added at the end: a shorter struct of an older caller is
//   read with defaults, and filled as far as it goes. A change that breaks this raises
//   FSDPRT_ABI_MAJOR. Set a struct to zero, then struct_size, then what you need.
// - Strings and shapes that are handed out live as long as the artifact.
// - One thread at a time may use a session. Ranks are threads of this process.
// - fsdprt_session_run and everything called per step allocate no memory.
// - All numbers in memory are in the machine's byte order; sizes are in bytes.
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_FSDPRT_H
#define FSDPRT_FSDPRT_H

#include <stddef.h>
#include <stdint.h>

#define FSDPRT_ABI_MAJOR 2
#define FSDPRT_ABI_MINOR 0

#if defined(__GNUC__)
#define FSDPRT_API __attribute__((visibility("default")))
#else
#define FSDPRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are fsdp-run's exit codes. */
typedef enum fsdprt_status {
  FSDPRT_OK = 0,
  FSDPRT_FAILED = 1,    /* the run failed: no memory, a full disk, numbers that are not finite */
  FSDPRT_BAD_INPUT = 2, /* an argument or a file is not what it has to be */
  FSDPRT_LOST = 3,      /* a rank died, or ended before the run did */
  FSDPRT_HUNG = 4,      /* a rank made no progress within the time limit */
  FSDPRT_ABANDONED = 5  /* stopped because another rank failed, which knows why */
} fsdprt_status;

/* As in the manifest. */
typedef enum fsdprt_dtype {
  FSDPRT_F64 = 0,
  FSDPRT_F32 = 1,
  FSDPRT_F16 = 2,
  FSDPRT_BF16 = 3,
  FSDPRT_I64 = 4,
  FSDPRT_I32 = 5,
  FSDPRT_I16 = 6,
  FSDPRT_I8 = 7,
  FSDPRT_I1 = 8
} fsdprt_dtype;

typedef enum fsdprt_state_role {
  FSDPRT_PARAMETER = 0,
  FSDPRT_FIRST_MOMENT = 1,
  FSDPRT_SECOND_MOMENT = 2,
  FSDPRT_MOMENTUM = 3,
  FSDPRT_MASTER = 4
} fsdprt_state_role;

typedef enum fsdprt_input_role {
  FSDPRT_TOKENS = 0,
  FSDPRT_TARGETS = 1,
  FSDPRT_OTHER = 2
} fsdprt_input_role;

/* Indices into the step block (16 x f32). */
enum {
  FSDPRT_BLOCK_LR = 0,
  FSDPRT_BLOCK_STEP = 1,
  FSDPRT_BLOCK_LOSS_SCALE = 2, /* of the next step; 0: nothing is scaled */
  FSDPRT_BLOCK_GROWTH = 3,     /* -1: the scale is fixed */
  FSDPRT_BLOCK_CLIP = 4,
  FSDPRT_BLOCK_TOKENS = 5,
  FSDPRT_BLOCK_FINITE = 6,
  FSDPRT_BLOCK_LOSS = 7,
  FSDPRT_BLOCK_GRAD_NORM = 8,
  FSDPRT_BLOCK_SKIPPED = 9, /* steps that were not finite and changed nothing */
  FSDPRT_BLOCK_LOOKUPS =
      10, /* ranks on which a checked lookup was out of range: nothing was changed, the run fails */
  FSDPRT_BLOCK_LOOKUP_NUMBER = 11, /* 1 + number of the first one of this rank; 0: none */
  FSDPRT_BLOCK_LOOKUP_VALUE =
      12, /* its index: bits 42 to 63, 21 to 41 and 0 to 20, in three slots */
  FSDPRT_BLOCK_SIZE = 16
};

typedef struct fsdprt_error {
  size_t struct_size;
  fsdprt_status status;
  char message[2048];
} fsdprt_error;

/* FSDPRT_ABI_MAJOR << 16 | FSDPRT_ABI_MINOR of the library that is linked. */
FSDPRT_API uint32_t fsdprt_abi_version(void);
FSDPRT_API const char *fsdprt_version(void); /* such as "0.1.0" */

/*===- Artifact: a file that has been checked in full ---------------------===*/

typedef struct fsdprt_artifact fsdprt_artifact;

typedef struct fsdprt_artifact_info {
  size_t struct_size;
  const char *compiler, *source, *target, *optimizer;
  uint64_t ranks;                 /* the product of the mesh's axes */
  uint64_t params;                /* number of parameters */
  uint64_t parameter_elements;    /* of all parameters together */
  uint64_t tokens_per_rank;       /* per step */
  uint64_t arena_bytes;           /* per rank, of the programs init, step and eval */
  uint64_t reference_arena_bytes; /* of reference and reference_init; 0: there are none */
  uint64_t image_bytes;
  uint32_t threads_per_rank; /* what it was compiled for */
  uint32_t workers;          /* the most threads per rank that there is scratch for */
  double lr;
  uint8_t sha256[32];
  uint64_t seed;       /* of initial values and samples, where a run gives none */
  uint64_t host_bytes; /* of arena_bytes: those of the host's arena */
  uint64_t file_bytes; /* of a rank's file, for state that was offloaded; 0: there is none */
  uint64_t constants;  /* tensors of floats in the model that nothing trains, and that are no
                          parameters */
} fsdprt_artifact_info;

typedef struct fsdprt_param_info {
  size_t struct_size;
  const char *name, *unit;
  fsdprt_dtype dtype;
  uint32_t rank;
  const uint64_t *shape;
  uint64_t elements;
  int32_t trainable;
  int32_t has_values; /* 'init' takes its values from the artifact */
  uint64_t unit_index;
  uint64_t unit_offset; /* of its first element in the unit's flat buffer */
} fsdprt_param_info;

/* With micro_batches > 1 `shape` has that as its leading dimension. */
typedef struct fsdprt_input_info {
  size_t struct_size;
  const char *name;
  fsdprt_input_role role;
  fsdprt_dtype dtype;
  uint32_t rank;
  const uint64_t *shape;
  uint64_t bytes;
  uint32_t micro_batches;
  uint64_t limit;           /* ids are in [0, limit); 0: no limit */
  const int64_t *extra_ids; /* or among these; with NULL and 0 there are none */
  uint64_t num_extra_ids;
} fsdprt_input_info;

/* Reads and checks `path`; the memory form keeps a copy, `name` is for messages. */
FSDPRT_API fsdprt_status fsdprt_artifact_open(const char *path, fsdprt_artifact **out,
                                              fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_artifact_open_memory(const void *bytes, size_t size,
                                                     const char *name, fsdprt_artifact **out,
                                                     fsdprt_error *error);
FSDPRT_API void fsdprt_artifact_close(fsdprt_artifact *artifact);

FSDPRT_API void fsdprt_artifact_get_info(const fsdprt_artifact *artifact,
                                         fsdprt_artifact_info *info);
FSDPRT_API int32_t fsdprt_artifact_has_program(const fsdprt_artifact *artifact, const char *name);
/* Return FSDPRT_BAD_INPUT when the index is not below the number. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_param(const fsdprt_artifact *artifact, uint64_t index,
                                                   fsdprt_param_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_input(const fsdprt_artifact *artifact,
                                                   const char *program, uint64_t index,
                                                   fsdprt_input_info *info);
/* Programs, layouts and kernels as text, in pieces; stops when `write` does not return 0. */
FSDPRT_API fsdprt_status fsdprt_artifact_dump(const fsdprt_artifact *artifact,
                                              int32_t (*write)(void *user, const char *text,
                                                               size_t size),
                                              void *user, fsdprt_error *error);

/*===- Layout: units, and the states that live from step to step ----------===*/

typedef struct fsdprt_axis_info {
  size_t struct_size;
  const char *name;
  uint64_t size;
} fsdprt_axis_info;

/* A flat buffer of parameters: `shards` times `shard_size` elements. */
typedef struct fsdprt_unit_info {
  size_t struct_size;
  const char *name;
  fsdprt_dtype dtype;
  uint64_t shards, shard_size;
} fsdprt_unit_info;

/* A state of a unit's flat buffer, in `pieces` of `elements` each. A rank holds one; ranks may hold
 * the same. */
typedef struct fsdprt_state_info {
  size_t struct_size;
  uint64_t unit;
  fsdprt_state_role role;
  fsdprt_dtype dtype;
  uint64_t pieces, elements;
} fsdprt_state_info;

/* Of the mesh, the units, and the states of the programs init, step and eval. Return
 * FSDPRT_BAD_INPUT when the index is not below the number. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_axis(const fsdprt_artifact *artifact, uint64_t index,
                                                  fsdprt_axis_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_unit(const fsdprt_artifact *artifact, uint64_t index,
                                                  fsdprt_unit_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_state(const fsdprt_artifact *artifact, uint64_t index,
                                                   fsdprt_state_info *info);
/* The number of the piece of a state that a rank holds. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_piece(const fsdprt_artifact *artifact, uint64_t state,
                                                   uint64_t rank, uint64_t *piece);

/*===- Session: ranks, their arenas and threads ---------------------------===*/

typedef struct fsdprt_session fsdprt_session;

/* Stands for the unsharded reference where a rank is asked for. */
#define FSDPRT_REFERENCE 0xffffffffu

typedef struct fsdprt_session_options {
  size_t struct_size;
  uint64_t ranks;            /* 0: what the artifact's mesh says; anything else has to be that */
  uint32_t threads_per_rank; /* 0: what the artifact was compiled for */
  uint32_t with_reference;   /* 1: the reference's arena too */
  const char *device;  /* NULL or "cpu"; "cuda", "emulate" for an artifact compiled for a GPU, the
                          latter in a program that has the emulator (fsdprt/emulator.h) */
  const char *backend; /* NULL or "local": all ranks are here. "shm", "mpi": this process has
                          `rank`.    "nccl": over NCCL, and ranks are where `control` says */
  double timeout_seconds; /* of a wait, from a peer's last sign of progress; 0: 60 */
  uint64_t seed;          /* of initial values */
  uint32_t profile;       /* 1: time every command of the program `step` on rank 0 */
  uint32_t trace_runs; /* keep when each command ran, for this many last runs of the program `step`;
                          0: none */
  double link_bytes_per_second; /* collectives take as long as a ring of such links would, or
                                   longer; 0: as fast as it goes */
  uint32_t rank;                /* of this process, where each has one */
  int32_t channel; /* shm: the descriptor that the process which starts the ranks has given; it is
                      taken */
  uint64_t steps_before;     /* of the run, before the first that is run here: for messages */
  double meeting_seconds;    /* mpi: how long the others are waited for; 0: 60 */
  const char *agreement;     /* mpi, shm: lines of "name=value" that have to be the same in all
                                processes; or NULL */
  uint32_t own_sums;         /* mpi: 1: the library's own sums, in its own order */
  uint32_t ranks_on_machine; /* mpi: how many of the ranks share this process's memory; 0: not
                                known, it is taken for the only one */
  const char *control; /* nccl: what else brings ranks together: NULL or "local", "shm", "mpi" */
  uint32_t local_rank; /* nccl, where each process has a rank: 1 + its number on its machine, which
                          gives the device; 0: `rank` */
  const char *offload_directory; /* of the files for state that was offloaded, which have no name;
                                    NULL: TMPDIR, or /tmp */
  uint32_t cuda_graph; /* cuda: 1: the program `step` of all ranks here is recorded as one CUDA
                          graph when it is first run, and launched as a whole */
  const char *gemm; /* cuda, emulate: who computes matrix products, which the artifact says and this
                       has to agree with: "nvptx" (generated kernels alone), "cublaslt" (it has
                       some), NULL or "auto" (either) */
} fsdprt_session_options;

typedef struct fsdprt_session_info {
  size_t struct_size;
  uint64_t ranks;
  uint32_t threads_per_rank;
  uint64_t arena_bytes;           /* mapped per rank (rounded up to the page) */
  uint64_t reference_arena_bytes; /* mapped; 0: none */
  uint64_t peak_bytes; /* the end of the highest range used so far on a rank, rounded up as buffers
                          are (to 64 bytes) */
  uint64_t collective_bytes[4];     /* that the first rank here has exchanged so far: the larger of
                                       source and target of each all-gather,
                                       reduce-scatter, all-reduce and broadcast */
  uint32_t first_rank, local_ranks; /* those of this process; all, unless it is one of several */
  uint32_t processes;
  const char *meeting; /* how ranks meet: "local", "shm", or a library with its version; lives as
                          long as the session */
  uint64_t file_bytes; /* that a rank's file takes */
  uint32_t file_is_direct; /* 1: reads and writes of it bypass the system's cache */
} fsdprt_session_info;

FSDPRT_API fsdprt_status fsdprt_session_create(const fsdprt_artifact *artifact,
                                               const fsdprt_session_options *options,
                                               fsdprt_session **out, fsdprt_error *error);
/* A rank that hangs keeps what it uses: its memory is then not returned. */
FSDPRT_API void fsdprt_session_destroy(fsdprt_session *session);
FSDPRT_API void fsdprt_session_get_info(const fsdprt_session *session, fsdprt_session_info *info);
/* cuda: what is in use now on the GPUs of the ranks here beside the session's arenas: contexts,
 * code, libraries, and what other processes have. 0 without a GPU. */
FSDPRT_API fsdprt_status fsdprt_session_get_gpu_memory(const fsdprt_session *session,
                                                       uint64_t *beside, fsdprt_error *error);

/* With several processes, each with some ranks: inputs, blocks and memory are those of the ranks
 * here. run, read_param, compare, visit_trace, exchange, collect and leave are called by all
 * processes, in the same order; what read_param, compare, visit_trace and collect bring together is
 * there in the process of rank 0, the others get nothing to use. The reference is where it was
 * asked for: in the process of rank 0, if anywhere. */

/* Runs a program on all its ranks and returns when all here have ended: init, step and
 * eval on every rank, reference_init and reference on the reference. After a
 * failure a session can only be destroyed. */
FSDPRT_API fsdprt_status fsdprt_session_run(fsdprt_session *session, const char *program,
                                            fsdprt_error *error);

/* After a run of `program` whose block says that something was not finite: with the blocks from
 * before it written again, runs it once more and writes into `text` which ranks were the first to
 * give such a number to a reduction, and to which one; "" when none did. */
FSDPRT_API fsdprt_status fsdprt_session_find_nonfinite(fsdprt_session *session, const char *program,
                                                       char *text, size_t size,
                                                       fsdprt_error *error);

/* Every process's `mine`, of at most 8192 bytes, one after another in the order of ranks.
 * Allocates nothing. */
FSDPRT_API fsdprt_status fsdprt_session_exchange(fsdprt_session *session, const void *mine,
                                                 size_t size, void *all, fsdprt_error *error);
/* `size` bytes at `data`, in the process of `rank`, come to `into` in the process of rank 0. */
FSDPRT_API fsdprt_status fsdprt_session_collect(fsdprt_session *session, uint32_t rank,
                                                const void *data, size_t size, void *into,
                                                fsdprt_error *error);
/* The run is over as planned: waits for all processes; that one ends is no failure then. */
FSDPRT_API fsdprt_status fsdprt_session_leave(fsdprt_session *session, fsdprt_error *error);
/* The run is over for this process, which will end with `status`: the others do not wait for it,
 * and those that a launcher of MPI started end with the same status, since it takes that of
 * whichever ends first. */
FSDPRT_API fsdprt_status fsdprt_session_fail(fsdprt_session *session, fsdprt_status status,
                                             fsdprt_error *error);

/* The last collectives of all ranks that this process knows of, as JSON, into a file. */
FSDPRT_API fsdprt_status fsdprt_session_write_flight_record(const fsdprt_session *session,
                                                            const char *path, const char *reason,
                                                            fsdprt_error *error);

/* One micro-batch of input `index` of a rank (or FSDPRT_REFERENCE). `size` is that of
 * one micro-batch. Ids out of [0, limit) are refused. */
FSDPRT_API fsdprt_status fsdprt_session_write_input(fsdprt_session *session, uint32_t rank,
                                                    uint64_t index, uint32_t micro_batch,
                                                    const void *data, size_t size,
                                                    fsdprt_error *error);

FSDPRT_API fsdprt_status fsdprt_session_read_block(const fsdprt_session *session, uint32_t rank,
                                                   float block[FSDPRT_BLOCK_SIZE],
                                                   fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_session_write_block(fsdprt_session *session, uint32_t rank,
                                                    const float block[FSDPRT_BLOCK_SIZE],
                                                    fsdprt_error *error);

/* The dtype in which a parameter's values of a role are held; FSDPRT_BAD_INPUT when they are not.
 */
FSDPRT_API fsdprt_status fsdprt_session_get_state(const fsdprt_session *session, uint64_t param,
                                                  fsdprt_state_role role, fsdprt_dtype *dtype);
/* Elements [first, first + count) of a parameter, put together from the shards
 * (rank 0) or from the reference (FSDPRT_REFERENCE), in the dtype of the state. */
FSDPRT_API fsdprt_status fsdprt_session_read_param(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t param, fsdprt_state_role role,
                                                   uint64_t first, uint64_t count, void *data,
                                                   size_t size, fsdprt_error *error);
/* The same the other way, into every rank's shard and the reference: the parameter and its
 * master, or the one state `role`. `data` is of `dtype`; types below f32
 * are rounded from f32, so that a parameter is its master, rounded. */
FSDPRT_API fsdprt_status fsdprt_session_write_param(fsdprt_session *session, uint64_t param,
                                                    fsdprt_state_role role, uint64_t first,
                                                    uint64_t count, const void *data,
                                                    fsdprt_dtype dtype, fsdprt_error *error);
/* One element of the shard that one rank holds: for tests which plant a fault. */
FSDPRT_API fsdprt_status fsdprt_session_poke_shard(
    fsdprt_session *session, uint32_t rank, uint64_t param,
    void (*change)(void *user, void *element, size_t size), void *user, fsdprt_error *error);

/* Elements [first, first + elements) of a unit's flat buffer in some state. */
typedef struct fsdprt_state_memory {
  size_t struct_size;
  void *data;
  fsdprt_dtype dtype;
  uint64_t first, elements;
} fsdprt_state_memory;

/* Where a rank's piece of a state lies, or all of it in the reference; to be read and written while
 * no program runs; `data` is NULL when it is in a file or in the memory of a GPU. With the step
 * blocks this is all that a step leaves to the next one. */
FSDPRT_API fsdprt_status fsdprt_session_get_memory(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t state, fsdprt_state_memory *memory,
                                                   fsdprt_error *error);

/* Elements [first, first + count) of that piece, in its dtype, wherever it lies; while no program
 * runs. */
FSDPRT_API fsdprt_status fsdprt_session_read_state(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t state, uint64_t first, uint64_t count,
                                                   void *data, fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_session_write_state(fsdprt_session *session, uint32_t rank,
                                                    uint64_t state, uint64_t first, uint64_t count,
                                                    const void *data, fsdprt_error *error);

typedef struct fsdprt_comparison {
  size_t struct_size;
  int32_t equal;
  uint64_t parameter_elements; /* compared, over all ranks */
  uint64_t optimizer_elements;
  /* The first difference: */
  uint32_t rank;
  uint64_t param, element;
  fsdprt_state_role role;
  double sharded, unsharded;
} fsdprt_comparison;

/* Every element of every state of every rank against the reference, bit for bit. */
FSDPRT_API fsdprt_status fsdprt_session_compare(const fsdprt_session *session,
                                                fsdprt_comparison *result, fsdprt_error *error);

/*===- Profile: where the time of `step` goes -----------------------------===*/

/* All launches of one kernel, all collectives of one kind with their waits, all copies, or all
 * fills. */
typedef struct fsdprt_profile_entry {
  size_t struct_size;
  const char *name; /* of the kernel; all_gather, ..., copy, fill */
  const char
      *kind; /* of the kernel, as compiled (map, row, column, contract, ...); collective, memory */
  const char *label; /* of its first command */
  uint64_t runs;     /* since the profile was last cleared */
  uint64_t nanoseconds;
  uint64_t bytes; /* of its bindings, or source and target, over all runs */
  uint64_t multiply_adds,
      bf16_multiply_adds; /* of its contractions, over all runs; one of f64 counts as two */
} fsdprt_profile_entry;

/* Both need a session that was made with `profile`. */
FSDPRT_API fsdprt_status fsdprt_session_clear_profile(fsdprt_session *session, fsdprt_error *error);
/* The entries that ran, longest first; stops when `visit` does not return 0. `total_nanoseconds`,
 * if not NULL, gets the time of the whole program, over all runs. */
FSDPRT_API fsdprt_status fsdprt_session_visit_profile(
    const fsdprt_session *session, int32_t (*visit)(void *user, const fsdprt_profile_entry *entry),
    void *user, uint64_t *total_nanoseconds, fsdprt_error *error);

/*===- Trace: when the commands of `step` ran ------------------------------===*/

typedef enum fsdprt_lane {
  FSDPRT_LANE_COMPUTE = 0,
  FSDPRT_LANE_GATHER = 1,
  FSDPRT_LANE_REDUCE = 2,
  FSDPRT_LANE_COPY = 3 /* between the arenas of device and host, on a channel */
} fsdprt_lane;

/* A collective has two: one in the lane gather or reduce, from its start to the end of its wait,
 * and one in the lane compute, the wait. So has a copy on a channel, in the lane copy; its kind is
 * "host copy". */
typedef struct fsdprt_trace_event {
  size_t struct_size;
  uint32_t rank;
  fsdprt_lane lane;
  uint64_t run;                    /* of `step`, from 1 */
  const char *name, *kind, *label; /* as in a profile */
  const char *unit;                /* of a collective: the unit's name, or "" */
  uint64_t begin, end;             /* nanoseconds of the machine's monotonic clock */
  uint64_t waited;                 /* of a collective: how much of it the rank did nothing else */
  uint64_t bytes;                  /* that it names */
  uint32_t
      ahead; /* of a collective: launches that the program has between its start and its wait */
} fsdprt_trace_event;

/* Needs a session that was made with `trace_runs`. The events of the ranks of this process, rank by
 * rank, run by run, in the order of their ends; stops when `visit` does not return 0. */
FSDPRT_API fsdprt_status fsdprt_session_visit_trace(
    const fsdprt_session *session, int32_t (*visit)(void *user, const fsdprt_trace_event *event),
    void *user, fsdprt_error *error);

/*===- Simulation: a step on a cluster that is not there (docs/explanation/simulator.md) ===*/
/* In the library fsdprt_simulate. */

typedef struct fsdprt_simulation {
  size_t struct_size;
  double step_seconds, compute_seconds;
  double exposed_seconds; /* that the rank waits for collectives */
  uint64_t ranks, tokens; /* tokens: of all ranks, per step */
  uint64_t arena_bytes;   /* per rank */
  uint64_t chunks;        /* that were moved over links */
} fsdprt_simulation;

/* All collectives of one kind and unit. Strings live as long as the call. */
typedef struct fsdprt_simulated_collective {
  size_t struct_size;
  const char *kind, *unit;
  const char *protocol; /* of the cluster's, switch, or "": a ring over links without protocols */
  uint64_t runs, bytes; /* of the larger of source and target */
  double in_flight_seconds, alone_seconds,
      exposed_seconds; /* from begin to end; with the links for itself; waited for */
} fsdprt_simulated_collective;

/* How busy one level of links was. */
typedef struct fsdprt_simulated_link {
  size_t struct_size;
  const char *name;
  double busy_seconds;
} fsdprt_simulated_link;

/* Each may be NULL. */
typedef struct fsdprt_simulation_visitor {
  size_t struct_size;
  void (*collective)(void *user,
                     const fsdprt_simulated_collective *collective); /* the most exposed first */
  void (*link)(void *user, const fsdprt_simulated_link *link);       /* innermost first */
  void (*event)(void *user,
                const fsdprt_trace_event *event); /* of rank 0, in nanoseconds of the step; text
                                                     lives as long as the artifact */
  void *user;
} fsdprt_simulation_visitor;

/* Runs the program `step` of `artifact` on the cluster that a file describes, without its kernels.
 */
FSDPRT_API fsdprt_status fsdprt_artifact_simulate(const fsdprt_artifact *artifact,
                                                  const char *cluster, fsdprt_simulation *result,
                                                  const fsdprt_simulation_visitor *visitor,
                                                  fsdprt_error *error);

/*===- The null device: all programs, walked and not executed (docs/explanation/null-device.md)
 * ===*/
/* In the library fsdprt_null. */

typedef struct fsdprt_walk_options {
  size_t struct_size;
  uint64_t steps;                /* of each session that is walked; 0: 3 */
  uint64_t peers;                /* ranks that run another artifact, */
  const uint64_t *peer_ranks;    /* which, */
  const char *const *peer_files; /* and what */
} fsdprt_walk_options;

typedef struct fsdprt_walk {
  size_t struct_size;
  uint64_t ranks, kinds,
      walked_kinds; /* kinds: ranks whose commands touch the same ranges are of one */
  uint64_t commands, events, bytes; /* that were walked; starts and waits; of all accesses */
  uint64_t collectives,
      communicators; /* that met, of each program once; groups and channels of the mesh */
  uint64_t findings; /* 0: nothing is wrong */
} fsdprt_walk;

/* Of a file that has the form of an artifact: nothing else about it is taken for granted. Calls
 * `finding` for each thing that is wrong, with how often it was met. Fails where the file cannot be
 * read, not because of findings. `finding` may be NULL. */
FSDPRT_API fsdprt_status fsdprt_artifact_walk(
    const char *path, const fsdprt_walk_options *options, fsdprt_walk *result,
    void (*finding)(void *user, const char *text, uint64_t times), void *user, fsdprt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_FSDPRT_H */
