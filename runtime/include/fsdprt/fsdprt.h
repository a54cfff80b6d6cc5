/*===- fsdprt.h - The runtime's C interface -----------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   artifact = fsdprt_artifact_open("gpt.fsdp")      checks the whole file, or refuses it
//   session  = fsdprt_session_create(artifact, ...)  creates arenas, threads, collectives
//   fsdprt_session_run(session, "init")
//   each step: fsdprt_session_write_input per rank, fsdprt_session_write_block (lr),
//              fsdprt_session_run(session, "step"), fsdprt_session_read_block
//   fsdprt_session_destroy, fsdprt_artifact_close
//
// This header declares all functions for artifacts and sessions, so it is long.
//
// All functions obey these rules:
//
// - The interface is plain C. No exception leaves a call. A function that can fail returns a
//   status, and writes a text with location, expected value and found value to `error`, which may
//   be NULL.
// - The first member of every struct, struct_size, is the size of the caller's struct. New members
//   are added only at the end. If the struct of an older caller is shorter, missing members have
//   defaults and are not written. A change that breaks this rule increments FSDPRT_ABI_MAJOR. Set a
//   struct to zero, then set struct_size and the members that you need.
// - Handles are created by open or create, and freed by close or destroy.
// - Returned strings and shapes live as long as the artifact, unless a comment says otherwise. The
//   artifact may be closed before its sessions are destroyed.
// - Only one thread at a time may use a session.
// - fsdprt_session_run and the other functions of a step allocate no memory.
// - Numbers in memory have the byte order of the machine. Sizes are in bytes and times in seconds,
//   unless a comment says otherwise.
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

/* Status of a call. The values are also the exit codes of fsdp-run. */
typedef enum fsdprt_status {
  FSDPRT_OK = 0,
  FSDPRT_FAILED = 1,    /* a failure, such as a full disk or non-finite numbers */
  FSDPRT_BAD_INPUT = 2, /* an argument or a file is invalid */
  FSDPRT_LOST = 3,      /* a rank ended before the end of the run */
  FSDPRT_HUNG = 4,      /* a rank made no progress within the time limit */
  FSDPRT_ABANDONED = 5  /* stopped because another rank failed; that rank reports the cause */
} fsdprt_status;

/* Element types. The manifest of an artifact contains the same numbers. */
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

/* Indices into the step block (16 x f32). The program `step` reads FSDPRT_BLOCK_LR, and writes the
 * other slots. */
enum {
  FSDPRT_BLOCK_LR = 0,         /* learning rate */
  FSDPRT_BLOCK_STEP = 1,       /* number of applied steps */
  FSDPRT_BLOCK_LOSS_SCALE = 2, /* loss scale of the next step, or 0 without scaling */
  FSDPRT_BLOCK_GROWTH = 3,     /* state of the dynamic loss scale, or -1 if the scale is fixed */
  FSDPRT_BLOCK_CLIP = 4,       /* multiplier of gradients: clipping factor / loss scale */
  FSDPRT_BLOCK_TOKENS = 5,     /* total number of tokens of all applied steps */
  FSDPRT_BLOCK_FINITE = 6,     /* 1 if loss and gradient norm of the step were finite, or 0 */
  FSDPRT_BLOCK_LOSS = 7,
  FSDPRT_BLOCK_GRAD_NORM = 8,
  FSDPRT_BLOCK_SKIPPED = 9, /* number of non-finite steps, which change no parameter. */
  /* Number of ranks on which a checked lookup was out of range. If the number is not 0, the run of
     the program fails and has changed no state. */
  FSDPRT_BLOCK_LOOKUPS = 10,
  /* 1 + index of the first checked lookup that was out of range on this rank, or 0 */
  FSDPRT_BLOCK_LOOKUP_NUMBER = 11,
  /* Id that this lookup out of range read, in three slots: bits 42-63, bits 21-41, bits 0-20 */
  FSDPRT_BLOCK_LOOKUP_VALUE = 12,
  FSDPRT_BLOCK_SIZE = 16 /* number of slots */
};

/* Error of a failed call. The library shortens `message` to the space that struct_size leaves. */
typedef struct fsdprt_error {
  size_t struct_size;
  fsdprt_status status;
  char message[2048];
} fsdprt_error;

/* Returns FSDPRT_ABI_MAJOR << 16 | FSDPRT_ABI_MINOR, with the values of the library. */
FSDPRT_API uint32_t fsdprt_abi_version(void);
/* Returns the version of the library as text, such as "0.1.0". */
FSDPRT_API const char *fsdprt_version(void);

/*===- Artifact: a file that has been checked in full ---------------------===*/

typedef struct fsdprt_artifact fsdprt_artifact;

typedef struct fsdprt_artifact_info {
  size_t struct_size;
  const char *compiler, *source, *target, *optimizer;
  uint64_t ranks;                 /* product of the sizes of all mesh axes */
  uint64_t params;                /* number of parameters */
  uint64_t parameter_elements;    /* total number of elements of all parameters */
  uint64_t tokens_per_rank;       /* number of tokens per step and rank */
  uint64_t arena_bytes;           /* size of a rank's arenas for init, step and eval */
  uint64_t reference_arena_bytes; /* size of the reference's arenas, or 0 without a reference */
  uint64_t image_bytes;           /* size in bytes of the code of kernels */
  uint32_t threads_per_rank;      /* default number of threads per rank */
  uint32_t workers;               /* largest number of threads per rank */
  double lr;                      /* learning rate of the compiled optimizer */
  uint8_t sha256[32];             /* hash of the file, with zeros in place of the hash */
  uint64_t seed;                  /* default seed of initial values and samples */
  uint64_t host_bytes;            /* how many of arena_bytes are in the host arena */
  uint64_t file_bytes;            /* bytes of a rank's file of offloaded states, or 0 */
  uint64_t constants; /* number of float tensors of the model that are not parameters. */
  /* The value is 2 if the program 'step' changes the loss scale in the step block, 1 if it does not
     change the loss scale, or 0 if unknown. */
  uint32_t loss_scale;
  uint64_t snapshot_bytes; /* how many of host_bytes are for copies of states, or 0 */
  /* Number of ranks that read different samples: `ranks` divided by the size T of the axis tensor.
     A caller writes the same inputs for ranks r·T to r·T + T - 1. */
  uint64_t data_ranks;
} fsdprt_artifact_info;

typedef struct fsdprt_param_info {
  size_t struct_size;
  const char *name, *unit;
  fsdprt_dtype dtype;
  uint32_t rank;         /* number of dimensions */
  const uint64_t *shape; /* `rank` sizes */
  uint64_t elements;
  int32_t trainable;
  int32_t has_values; /* 1 if the artifact stores initial values */
  uint64_t unit_index;
  uint64_t unit_offset; /* index of the rank's element 0 in the flat buffer of the unit */
  /* If the axis tensor splits the parameter: the dimension that is split, and the sizes of the
     blocks of which the dimension consists. A rank has a part of each block, and `shape` is that of
     the whole parameter. num_split_blocks is 0 if ranks have the whole parameter. */
  uint32_t split_dim, num_split_blocks;
  const uint64_t *split_blocks;
} fsdprt_param_info;

/* An input of a program. If a step has several micro-batches, the leading dimension of `shape` is
 * micro_batches. */
typedef struct fsdprt_input_info {
  size_t struct_size;
  const char *name;
  fsdprt_input_role role;
  fsdprt_dtype dtype;
  uint32_t rank;         /* number of dimensions */
  const uint64_t *shape; /* `rank` sizes */
  uint64_t bytes;        /* total size in bytes of all micro-batches */
  uint32_t micro_batches;
  uint64_t limit;           /* ids must be in [0, limit), unless limit is 0 */
  const int64_t *extra_ids; /* other valid ids, such as a padding id, or NULL */
  uint64_t num_extra_ids;
} fsdprt_input_info;

/* fsdprt_artifact_open reads an artifact from the file `path`. fsdprt_artifact_open_memory copies
 * an artifact of `size` bytes from `bytes`, and uses `name` as file name in messages. Both
 * functions check the whole artifact. On success, *out is a new handle, which the caller must
 * close. */
FSDPRT_API fsdprt_status fsdprt_artifact_open(const char *path, fsdprt_artifact **out,
                                              fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_artifact_open_memory(const void *bytes, size_t size,
                                                     const char *name, fsdprt_artifact **out,
                                                     fsdprt_error *error);
/* Opens the artifact `path` if the file PATH.sig contains a signature of the artifact. The Ed25519
 * key of the signature is in the PEM file `public_key`. The signature is verified before the
 * content of the artifact is used. */
FSDPRT_API fsdprt_status fsdprt_artifact_open_signed(const char *path, const char *public_key,
                                                     fsdprt_artifact **out, fsdprt_error *error);
/* Frees the handle. */
FSDPRT_API void fsdprt_artifact_close(fsdprt_artifact *artifact);

/* Writes the properties of an artifact to `info`. */
FSDPRT_API void fsdprt_artifact_get_info(const fsdprt_artifact *artifact,
                                         fsdprt_artifact_info *info);
/* Returns 1 if the artifact has a program `name`, and otherwise 0. */
FSDPRT_API int32_t fsdprt_artifact_has_program(const fsdprt_artifact *artifact, const char *name);
/* Returns compiler option `index`, for example "mesh=shard=2", or NULL if `index` is too large.
 * Options with default values are not listed. An artifact of an older compiler lists no options. */
FSDPRT_API const char *fsdprt_artifact_get_option(const fsdprt_artifact *artifact, uint64_t index);
/* fsdprt_artifact_get_param describes parameter `index`, and fsdprt_artifact_get_input describes
 * input `index` of `program`. Both functions return FSDPRT_BAD_INPUT if `index` is out of range. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_param(const fsdprt_artifact *artifact, uint64_t index,
                                                   fsdprt_param_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_input(const fsdprt_artifact *artifact,
                                                   const char *program, uint64_t index,
                                                   fsdprt_input_info *info);
/* Writes programs, layouts and kernels of an artifact as text. Calls `write` with consecutive parts
 * of the text, which are not zero-terminated. Fails if `write` returns a value other than 0. */
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

/* A unit: a group of parameters in one flat buffer of `shards` times `shard_size` elements. */
typedef struct fsdprt_unit_info {
  size_t struct_size;
  const char *name;
  fsdprt_dtype dtype;
  uint64_t shards, shard_size;
  uint64_t slices; /* size T of the axis tensor if it splits parameters of the unit, otherwise 1 */
} fsdprt_unit_info;

/* One state of a unit: the parameters, a moment, the momentum or the master. A state is a flat
 * buffer that is divided into `pieces` pieces of `elements` elements each. Each rank has one piece.
 * Several ranks may have the same piece. If the unit has T slices, the state is the concatenation
 * of the flat buffers of the T coordinates on the axis tensor. */
typedef struct fsdprt_state_info {
  size_t struct_size;
  uint64_t unit; /* index of the unit */
  fsdprt_state_role role;
  fsdprt_dtype dtype;
  uint64_t pieces, elements;
} fsdprt_state_info;

/* These functions describe an axis of the mesh, a unit, or a state of the programs init, step and
 * eval. They return FSDPRT_BAD_INPUT if `index` is out of range. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_axis(const fsdprt_artifact *artifact, uint64_t index,
                                                  fsdprt_axis_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_unit(const fsdprt_artifact *artifact, uint64_t index,
                                                  fsdprt_unit_info *info);
FSDPRT_API fsdprt_status fsdprt_artifact_get_state(const fsdprt_artifact *artifact, uint64_t index,
                                                   fsdprt_state_info *info);
/* Writes to *piece the index of the piece of `state` that `rank` has. Returns FSDPRT_BAD_INPUT if
 * `state` or `rank` is out of range. */
FSDPRT_API fsdprt_status fsdprt_artifact_get_piece(const fsdprt_artifact *artifact, uint64_t state,
                                                   uint64_t rank, uint64_t *piece);

/*===- Session: ranks, their arenas and threads ---------------------------===*/

typedef struct fsdprt_session fsdprt_session;

/* Value of a `rank` argument that selects the unsharded reference. */
#define FSDPRT_REFERENCE 0xffffffffu

typedef struct fsdprt_session_options {
  size_t struct_size;
  uint64_t ranks;            /* number of ranks of the artifact's mesh; 0 for any */
  uint32_t threads_per_rank; /* threads per rank; 0 for the artifact's default */
  uint32_t with_reference;   /* 1 to also create the unsharded reference. */
  /* NULL or "cpu" for an artifact for a CPU, "cuda" or "emulate" for an artifact for a GPU. For
     "emulate", the program must have registered the emulator (fsdprt/emulator.h). */
  const char *device;
  /* NULL or "local": all ranks are threads of this process. "shm" or "mpi": this process has only
     the rank `rank`. "nccl": collectives use NCCL, and the backend `control` connects the ranks. */
  const char *backend;
  double timeout_seconds;       /* longest wait for a rank without progress; 0 for 60 */
  uint64_t seed;                /* seed of initial values */
  uint32_t profile;             /* 1 to measure the time of each command of `step` */
  uint32_t trace_runs;          /* number of runs of `step` in the trace; 0 for no trace */
  double link_bytes_per_second; /* simulated bandwidth of links; 0 for no limit */
  uint32_t rank;                /* rank of this process, if it has one rank */
  int32_t channel;        /* shm: descriptor of the rank's channel, which the session closes */
  uint64_t steps_before;  /* number of steps that were made before this run */
  double meeting_seconds; /* mpi: longest wait for processes to connect; 0 for 60. */
  /* NULL, or for mpi and shm: lines "name=value" that must be equal in all processes */
  const char *agreement;
  uint32_t own_sums;         /* mpi: 1 if MPI computes sums, in an order that MPI selects */
  uint32_t ranks_on_machine; /* mpi: number of ranks on this machine; 0 if unknown */
  const char *control;       /* nccl: NULL, "local", "shm" or "mpi". */
  /* For nccl with one rank per process: 1 + index of the rank on its machine, which selects the
     GPU. If local_rank is 0, `rank` selects the GPU. */
  uint32_t local_rank;
  /* Folder for the unnamed files of offloaded states; NULL for $TMPDIR or /tmp */
  const char *offload_directory;
  /* cuda: 1 to record the commands of `step` on all ranks of this process as one CUDA graph in the
     first run, and to launch the graph in all runs */
  uint32_t cuda_graph;
  /* cuda, emulate: GEMM backend that the artifact must use: "nvptx" (only generated kernels),
     "cublaslt", or NULL or "auto" (any) */
  const char *gemm;
  /* cpu with "local" or "shm": 1 to forbid system calls that threads do not need to run kernels. A
     forbidden call ends the process with exit code 1 and a message on stderr. */
  uint32_t restrict_calls;
  /* mpi: time in seconds after which a process without messages is lost; 0 for 3 */
  double heartbeat_seconds;
  /* cuda with "nccl": "on" to register arenas as symmetric windows, NULL or "auto" to do so if NCCL
     can, "off" not to do so */
  const char *nccl_windows;
  /* nccl: CTA policy of all collectives: "efficiency" (NCCL 2.27), "zero" (NCCL 2.28: all-gathers
     by copy engines), or NULL or "default" */
  const char *nccl_cta_policy;
  uint32_t nccl_max_ctas; /* nccl: most multiprocessors of a collective, 1 to 32; 0 for any */
} fsdprt_session_options;

typedef struct fsdprt_session_info {
  size_t struct_size;
  uint64_t ranks;
  uint32_t threads_per_rank;
  uint64_t arena_bytes;           /* mapped bytes per rank, rounded up to pages */
  uint64_t reference_arena_bytes; /* mapped bytes of the reference, or 0 */
  uint64_t peak_bytes;            /* highest end offset used so far, rounded up to 64. */
  /* Numbers of bytes that the first rank of this process has exchanged by all-gathers, by
     reduce-scatters, by all-reduces and by broadcasts. The bytes of a collective are the size of
     its source or of its target, whichever is larger. */
  uint64_t collective_bytes[4];
  uint32_t first_rank, local_ranks; /* ranks of this process */
  uint32_t processes;
  /* Backend through which ranks communicate: "local", "shm", or a library with its version. The
     text is valid as long as the session exists. */
  const char *meeting;
  uint64_t file_bytes;     /* bytes of a rank's file of offloaded states, or 0 */
  uint32_t file_is_direct; /* 1 if I/O on the file of offloaded states bypasses the page cache */
  uint64_t shift_bytes;    /* bytes that the same rank has sent in shifts, as in collective_bytes */
} fsdprt_session_info;

/* Creates a session: checks `options`, which may be NULL, maps arenas, starts threads and connects
 * the ranks. On success, *out is a new handle, which the caller must destroy. */
FSDPRT_API fsdprt_status fsdprt_session_create(const fsdprt_artifact *artifact,
                                               const fsdprt_session_options *options,
                                               fsdprt_session **out, fsdprt_error *error);
/* Stops the threads and frees the session. If a rank hangs, the memory of the session remains
 * allocated, because the thread of this rank may still use the memory. */
FSDPRT_API void fsdprt_session_destroy(fsdprt_session *session);
/* Writes the sizes and counters of a session to `info`. */
FSDPRT_API void fsdprt_session_get_info(const fsdprt_session *session, fsdprt_session_info *info);
/* Writes to *beside the number of bytes that are in use on the GPUs of this process's ranks,
 * without the arenas of the session. These bytes belong to contexts, code, libraries and other
 * processes. Writes 0 if the device is no GPU. */
FSDPRT_API fsdprt_status fsdprt_session_get_gpu_memory(const fsdprt_session *session,
                                                       uint64_t *beside, fsdprt_error *error);

/* In a run with several processes, a process can access only the inputs, blocks and memory of its
 * own ranks. All processes must call fsdprt_session_run, _find_nonfinite, _read_param, _compare,
 * _visit_trace, _exchange, _collect and _leave in the same order. Only the process of rank 0 gets
 * results of _read_param, _compare, _visit_trace and _collect. Only this process may have the
 * reference. */

/* Runs a program, and returns when all ranks of this process have executed the program. The
 * programs init, step and eval run on every rank, and reference_init and reference run on the
 * reference. After a failure, the session can only be destroyed. */
FSDPRT_API fsdprt_status fsdprt_session_run(fsdprt_session *session, const char *program,
                                            fsdprt_error *error);

/* Runs `program` once more to find the first reduction to which ranks pass a non-finite number. The
 * last run must have been a run of `program` whose step block reports a non-finite number. The
 * caller must have restored the values of the step blocks from before that run. Writes a text with
 * the reduction and the ranks to `text`, which has `size` bytes, or "" if no reduction is found. */
FSDPRT_API fsdprt_status fsdprt_session_find_nonfinite(fsdprt_session *session, const char *program,
                                                       char *text, size_t size,
                                                       fsdprt_error *error);

/* Gathers the `size` bytes at `mine` of every process into `all`, in the order of ranks. `size` is
 * at most 8192. Allocates no memory. */
FSDPRT_API fsdprt_status fsdprt_session_exchange(fsdprt_session *session, const void *mine,
                                                 size_t size, void *all, fsdprt_error *error);
/* Copies `size` bytes from `data` in the process of `rank` to `into` in the process of rank 0. */
FSDPRT_API fsdprt_status fsdprt_session_collect(fsdprt_session *session, uint32_t rank,
                                                const void *data, size_t size, void *into,
                                                fsdprt_error *error);
/* Waits until all processes have called this function. A process that ends after this call does
 * not count as failed. */
FSDPRT_API fsdprt_status fsdprt_session_leave(fsdprt_session *session, fsdprt_error *error);
/* Reports to the other processes that this process has failed with `status`, so that they do not
 * wait for this process. Over MPI, all processes then end with this status, because an MPI launcher
 * returns the status of the process that ends first. */
FSDPRT_API fsdprt_status fsdprt_session_fail(fsdprt_session *session, fsdprt_status status,
                                             fsdprt_error *error);

/* Writes the flight record to the file `path`. The record is JSON with `reason` and the last
 * collectives of all ranks that this process monitors. */
FSDPRT_API fsdprt_status fsdprt_session_write_flight_record(const fsdprt_session *session,
                                                            const char *path, const char *reason,
                                                            fsdprt_error *error);

/* Writes one micro-batch of input `index` for `rank` or FSDPRT_REFERENCE. `size` must be the number
 * of bytes of one micro-batch. Fails if an id is neither in [0, limit) nor an extra id. */
FSDPRT_API fsdprt_status fsdprt_session_write_input(fsdprt_session *session, uint32_t rank,
                                                    uint64_t index, uint32_t micro_batch,
                                                    const void *data, size_t size,
                                                    fsdprt_error *error);

/* These functions copy the step block from or to `rank` or FSDPRT_REFERENCE. */
FSDPRT_API fsdprt_status fsdprt_session_read_block(const fsdprt_session *session, uint32_t rank,
                                                   float block[FSDPRT_BLOCK_SIZE],
                                                   fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_session_write_block(fsdprt_session *session, uint32_t rank,
                                                    const float block[FSDPRT_BLOCK_SIZE],
                                                    fsdprt_error *error);

/* Writes to *dtype the dtype of the state with role `role` of a parameter. Returns FSDPRT_BAD_INPUT
 * if the parameter has no such state. */
FSDPRT_API fsdprt_status fsdprt_session_get_state(const fsdprt_session *session, uint64_t param,
                                                  fsdprt_state_role role, fsdprt_dtype *dtype);
/* Reads elements [first, first + count) of the state with role `role` of a parameter, in the dtype
 * of the state. Reads from the shards if `rank` is 0, and from the reference if `rank` is
 * FSDPRT_REFERENCE. `size` must be the number of bytes of `count` elements. */
FSDPRT_API fsdprt_status fsdprt_session_read_param(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t param, fsdprt_state_role role,
                                                   uint64_t first, uint64_t count, void *data,
                                                   size_t size, fsdprt_error *error);
/* Writes elements [first, first + count) of a parameter to the shards of the ranks of this process
 * and to the reference. If `role` is FSDPRT_PARAMETER, also writes the master. `data` has elements
 * of type `dtype`, which are rounded to the dtype of the written state. */
FSDPRT_API fsdprt_status fsdprt_session_write_param(fsdprt_session *session, uint64_t param,
                                                    fsdprt_state_role role, uint64_t first,
                                                    uint64_t count, const void *data,
                                                    fsdprt_dtype dtype, fsdprt_error *error);
/* Calls `change` with the address of one element of the shard of a parameter on `rank`. Tests use
 * this function to plant faults. */
FSDPRT_API fsdprt_status fsdprt_session_poke_shard(
    fsdprt_session *session, uint32_t rank, uint64_t param,
    void (*change)(void *user, void *element, size_t size), void *user, fsdprt_error *error);

/* Memory of elements [first, first + elements) of the flat buffer of a state. */
typedef struct fsdprt_state_memory {
  size_t struct_size;
  void *data;
  fsdprt_dtype dtype;
  uint64_t first, elements;
} fsdprt_state_memory;

/* Sets `memory` to a rank's piece of `state`, or to the whole state of the reference. `data` is
 * NULL if the state is in a file or in GPU memory. The caller may use the memory only while no
 * program runs. The only data that a step passes to the next step are the states and the step
 * blocks. */
FSDPRT_API fsdprt_status fsdprt_session_get_memory(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t state, fsdprt_state_memory *memory,
                                                   fsdprt_error *error);

/* Sets `memory` to the copy of a rank's piece of `state` that the last run of the program
 * 'snapshot' made. The copy is in host memory, and other programs do not change it. Fails if the
 * artifact was compiled without --async-save. */
FSDPRT_API fsdprt_status fsdprt_session_get_snapshot(const fsdprt_session *session, uint32_t rank,
                                                     uint64_t state, fsdprt_state_memory *memory,
                                                     fsdprt_error *error);

/* These functions copy elements [first, first + count) of a rank's piece of `state`, in the state's
 * dtype. The state may be in host memory, in GPU memory or in a file. No program may run at the
 * same time. */
FSDPRT_API fsdprt_status fsdprt_session_read_state(const fsdprt_session *session, uint32_t rank,
                                                   uint64_t state, uint64_t first, uint64_t count,
                                                   void *data, fsdprt_error *error);
FSDPRT_API fsdprt_status fsdprt_session_write_state(fsdprt_session *session, uint32_t rank,
                                                    uint64_t state, uint64_t first, uint64_t count,
                                                    const void *data, fsdprt_error *error);

typedef struct fsdprt_comparison {
  size_t struct_size;
  int32_t equal;
  uint64_t parameter_elements; /* number of compared elements of parameters, over all ranks */
  uint64_t optimizer_elements; /* number of compared elements of states, over all ranks. */
  /* If `equal` is 0, the next members describe the first difference. */
  uint32_t rank;
  uint64_t param, element;
  fsdprt_state_role role;
  double sharded, unsharded; /* the two values */
} fsdprt_comparison;

/* Compares every element of every state of every rank with the reference, bit for bit. */
FSDPRT_API fsdprt_status fsdprt_session_compare(const fsdprt_session *session,
                                                fsdprt_comparison *result, fsdprt_error *error);

/*===- Profile: where the time of `step` goes -----------------------------===*/

/* An entry of a profile. It contains sums over all launches of one kernel, over all collectives of
 * one type and their waits, over all copies, or over all fills. */
typedef struct fsdprt_profile_entry {
  size_t struct_size;
  const char *name;     /* name of the kernel, or "all_gather", ..., "copy", "fill" */
  const char *kind;     /* kind of the kernel ("map", "row", ...), or "collective", "memory" */
  const char *label;    /* label of the first command */
  uint64_t runs;        /* number of executions since the profile was last cleared */
  uint64_t nanoseconds; /* time of all these executions */
  uint64_t bytes;       /* sum of the bytes of bindings, or of source and target. */
  /* Numbers of multiply-adds of contractions over all executions. A multiply-add of f64 counts
     twice. */
  uint64_t multiply_adds, bf16_multiply_adds;
} fsdprt_profile_entry;

/* Sets all times to zero. Fails unless the session was created with `profile`. */
FSDPRT_API fsdprt_status fsdprt_session_clear_profile(fsdprt_session *session, fsdprt_error *error);
/* Calls `visit` for each entry, by descending time, until `visit` returns a value other than 0. If
 * `total_nanoseconds` is not NULL, sets it to the total time of all runs of `step`. Fails unless
 * the session was created with `profile`. */
FSDPRT_API fsdprt_status fsdprt_session_visit_profile(
    const fsdprt_session *session, int32_t (*visit)(void *user, const fsdprt_profile_entry *entry),
    void *user, uint64_t *total_nanoseconds, fsdprt_error *error);

/*===- Trace: when the commands of `step` ran ------------------------------===*/

typedef enum fsdprt_lane {
  FSDPRT_LANE_COMPUTE = 0,
  FSDPRT_LANE_GATHER = 1,
  FSDPRT_LANE_REDUCE = 2,
  FSDPRT_LANE_COPY = 3 /* copies on a channel, between device, host and file */
} fsdprt_lane;

/* An event of a trace. A collective has two events: an event in the lane gather or reduce, from its
 * start to the end of its wait, and an event in the lane compute for its wait. A copy on a channel
 * has an event of kind "host copy" in the lane copy, and an event in the lane compute for its wait.
 * */
typedef struct fsdprt_trace_event {
  size_t struct_size;
  uint32_t rank;
  fsdprt_lane lane;
  uint64_t run;                    /* number of the run of `step`, counted from 1 */
  const char *name, *kind, *label; /* as in fsdprt_profile_entry */
  const char *unit;                /* unit of a collective, or "" */
  uint64_t begin, end;             /* times of CLOCK_MONOTONIC in nanoseconds */
  uint64_t waited;                 /* collective: time in ns for which the rank was idle */
  uint64_t bytes;                  /* bytes of a launch's bindings, or of source and target */
  uint32_t ahead;                  /* collective: number of launches between start and wait */
} fsdprt_trace_event;

/* Calls `visit` for each event until `visit` returns a value other than 0. Events are sorted by
 * rank, then by run, then by execution order. Fails unless the session was created with
 * `trace_runs`. */
FSDPRT_API fsdprt_status fsdprt_session_visit_trace(
    const fsdprt_session *session, int32_t (*visit)(void *user, const fsdprt_trace_event *event),
    void *user, fsdprt_error *error);

/*===- Simulation of a step on a described cluster (docs/explanation/simulator.md) -------===*/
/* The simulation is in the library fsdprt_simulate. */

typedef struct fsdprt_simulation {
  size_t struct_size;
  double step_seconds, compute_seconds;
  double exposed_seconds; /* time in which a rank waits for collectives */
  uint64_t ranks, tokens; /* `tokens`: number of tokens per step, over all ranks */
  uint64_t arena_bytes;   /* bytes per rank */
  uint64_t chunks;        /* number of chunks sent over links */
  /* Clocks per second by which kernels were timed; 0: they were timed by rates. */
  double clocks_per_second;
  /* Part of compute_seconds by which collectives, which occupy multiprocessors, slow kernels. */
  double slowed_seconds;
  /* Time of a step with the other way of all-gathers; 0 if the cluster has no copy engines. */
  double other_seconds;
  uint32_t copies; /* 1 if all-gathers run on copy engines, which is then the faster way */
} fsdprt_simulation;

/* Sums over the collectives of one type and one unit. The strings are valid during the callback. */
typedef struct fsdprt_simulated_collective {
  size_t struct_size;
  const char *kind, *unit;
  const char *protocol; /* protocol of the cluster, "switch", or "" for a ring without protocols */
  uint64_t runs, bytes; /* `bytes`: source or target, whichever is larger */
  double in_flight_seconds; /* time from beginning to end */
  double alone_seconds;     /* the same if all links were idle */
  double exposed_seconds;   /* time for which the rank waits for the collectives */
} fsdprt_simulated_collective;

/* Time for which the links of one level of a cluster are busy. */
typedef struct fsdprt_simulated_link {
  size_t struct_size;
  const char *name;
  double busy_seconds;
} fsdprt_simulated_link;

/* Sum over the runs of one kernel. Strings live until the callback returns. */
typedef struct fsdprt_simulated_kernel {
  size_t struct_size;
  const char *kind, *name;
  const char *label;       /* of the first command that runs the kernel */
  const char *bound;       /* what bounds its longest launch: "tensor", "memory", "launch", .. */
  uint64_t runs, launches; /* a run of a kernel has one or several launches */
  double seconds;
  double tensor_seconds, memory_seconds; /* least times for its multiply-adds and its bytes */
} fsdprt_simulated_kernel;

/* Callbacks, each of which may be NULL. */
typedef struct fsdprt_simulation_visitor {
  size_t struct_size;
  /* Called for each collective, by descending exposed_seconds. */
  void (*collective)(void *user, const fsdprt_simulated_collective *collective);
  /* Called for each level of links, innermost first. */
  void (*link)(void *user, const fsdprt_simulated_link *link);
  /* Called for each event of rank 0. Times are in nanoseconds from the beginning of the step. The
     strings in the event are valid as long as the artifact is open. */
  void (*event)(void *user, const fsdprt_trace_event *event);
  void *user;
  /* Called for each kernel, longest first. */
  void (*kernel)(void *user, const fsdprt_simulated_kernel *kernel);
  /* Called for each bound of launches with the sum of their seconds, longest first. */
  void (*bound)(void *user, const char *name, double seconds);
} fsdprt_simulation_visitor;

/* Simulates the program `step` on the cluster that the file `cluster` describes, without running
 * kernels. Fills `result` and calls the callbacks of `visitor`, which may be NULL. */
FSDPRT_API fsdprt_status fsdprt_artifact_simulate(const fsdprt_artifact *artifact,
                                                  const char *cluster, fsdprt_simulation *result,
                                                  const fsdprt_simulation_visitor *visitor,
                                                  fsdprt_error *error);

/*===- Null device: checks all programs without running kernels --------------------------===*/
/* The null device is in the library fsdprt_null (docs/explanation/null-device.md). */

typedef struct fsdprt_walk_options {
  size_t struct_size;
  uint64_t steps;                /* number of steps to walk; 0 for 3 */
  uint64_t peers;                /* number of ranks that run another artifact */
  const uint64_t *peer_ranks;    /* array of `peers` ranks */
  const char *const *peer_files; /* array of `peers` paths of artifacts */
} fsdprt_walk_options;

typedef struct fsdprt_walk {
  size_t struct_size;
  /* The mesh has `ranks` ranks. Ranks are of the same kind if their commands use equal ranges of
     memory. There are `kinds` kinds, and commands of `walked_kinds` of these kinds were walked. */
  uint64_t ranks, kinds, walked_kinds;
  uint64_t commands;      /* number of walked commands */
  uint64_t events;        /* number of starts and waits */
  uint64_t bytes;         /* bytes of all accesses */
  uint64_t collectives;   /* completed collectives; each program counts once */
  uint64_t communicators; /* number of pairs of a mesh group and a channel */
  uint64_t findings;      /* number of faults */
} fsdprt_walk;

/* Walks all commands of the programs of an artifact without running kernels, and looks for races,
 * uninitialised reads and other faults. Before the walk, only the format of the file is checked.
 * Calls `finding`, which may be NULL, with the text and the number of occurrences of each fault.
 * Fails if the file cannot be read. Faults in programs are no failure. */
FSDPRT_API fsdprt_status fsdprt_artifact_walk(
    const char *path, const fsdprt_walk_options *options, fsdprt_walk *result,
    void (*finding)(void *user, const char *text, uint64_t times), void *user, fsdprt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_FSDPRT_H */
