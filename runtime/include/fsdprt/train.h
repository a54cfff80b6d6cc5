/*===- train.h - Launching, saving and resuming, in C -------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// These functions let other programs do what fsdp-run does before and after steps: find the rank of
// a process, connect to the other ranks, save and resume. The rules of fsdprt.h apply to them.
//
//   fsdprt_launch_join(artifact, ..., &launch)       launch is NULL if there is no launcher
//   fsdprt_launch_place(launch, &session_options)    sets backend, rank and channel
//   fsdprt_session_create(artifact, &session_options, ...)
//   fsdprt_saves_resume, fsdprt_session_run per step, fsdprt_saver_save
//   fsdprt_session_leave or fsdprt_session_fail, fsdprt_session_destroy
//   fsdprt_launch_leave(launch, ...)
//
//===----------------------------------------------------------------------===*/

#ifndef FSDPRT_TRAIN_H
#define FSDPRT_TRAIN_H

#include "fsdprt/fsdprt.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===- Ranks that a launcher starts, one in each process ------------------===*/

/* Rank of this process among the processes that torchrun, mpirun, srun or a script started. */
typedef struct fsdprt_launch fsdprt_launch;

typedef struct fsdprt_launch_options {
  size_t struct_size;
  const char *program;       /* name of the program in messages; NULL for "fsdprt" */
  const char *path;          /* path of the artifact in messages */
  const char *device;        /* name of the device; NULL for "cpu" */
  const char *backend;       /* name of the backend; NULL if the launcher determines it */
  double rendezvous_seconds; /* time within which all ranks must connect; 0 selects 60 */
  double heartbeat_seconds;  /* time after which a rank without heartbeat is lost; 0 selects 2 */
  double timeout_seconds;    /* longest wait for a rank that makes no progress; 0 selects 60 */
} fsdprt_launch_options;

/* Reads the rank of this process from the environment (RANK and WORLD_SIZE, or variables of MPI or
 * Slurm), and checks that the launcher has started as many processes as `artifact` has ranks.
 * Without MPI, also connects the ranks, which must be on one machine. Rank 0 then forks a process
 * that supervises the ranks. Sets *out to NULL if no launcher has started this process, or if this
 * process is the only one. */
FSDPRT_API fsdprt_status fsdprt_launch_join(const fsdprt_artifact *artifact,
                                            const fsdprt_launch_options *options,
                                            fsdprt_launch **out, fsdprt_error *error);
/* Sets the members backend, control, rank, local_rank, ranks_on_machine and channel of `options`.
 * The strings are valid as long as `launch`. */
FSDPRT_API void fsdprt_launch_place(const fsdprt_launch *launch, fsdprt_session_options *options);
/* Ends the run of this rank and frees `launch`. If `status` is not FSDPRT_OK, reports to the other
 * ranks that this rank has failed with `message`, and writes the first failure of all ranks to
 * `error`, which may be NULL. */
FSDPRT_API void fsdprt_launch_leave(fsdprt_launch *launch, fsdprt_status status,
                                    const char *message, fsdprt_error *error);

/*===- Saves: the complete state of a run ---------------------------------===*/

typedef struct fsdprt_resumed {
  size_t struct_size;
  uint64_t step, seed; /* step and seed of the save; the next step is step + 1 */
  char folder[4096];   /* folder of the save */
  char fallback[1024]; /* reason why the newest save is not used, or "" */
  char remark[1024];   /* differences from the saved run; "" for the same artifact */
} fsdprt_resumed;

/* Loads the save `path`, or the newest undamaged save in the folder `path`, into the ranks of this
 * process and, if `reference` is not 0, into the reference. The program 'init' must have run. The
 * save may be of another mesh, strategy or dtype of states, but must be of the same model and
 * optimizer. `artifact_path` is only used in messages. All processes of a run must call this
 * function. */
FSDPRT_API fsdprt_status fsdprt_saves_resume(const fsdprt_artifact *artifact,
                                             fsdprt_session *session, const char *path,
                                             const char *artifact_path, int32_t reference,
                                             fsdprt_resumed *resumed, fsdprt_error *error);

/* Object that writes the saves of one run to one folder. */
typedef struct fsdprt_saver fsdprt_saver;

/* Creates the folder of saves if it does not exist, and locks the folder against other processes.
 * `resumed` is the save from which this run resumes, or NULL. All saves in the folder must be of
 * this run. The saver keeps the newest `keep` saves, or all saves if `keep` is 0. All processes of
 * a run must call this function. */
FSDPRT_API fsdprt_status fsdprt_saver_open(const fsdprt_artifact *artifact,
                                           const fsdprt_session *session, const char *folder,
                                           const fsdprt_resumed *resumed, uint64_t keep,
                                           fsdprt_saver **out, fsdprt_error *error);
/* If a save is in flight, cancels it and removes its files. The session must still exist. */
FSDPRT_API void fsdprt_saver_close(fsdprt_saver *saver);
/* Writes the save DIR/step-NNNNNNNN: the state of the ranks after step `step` of the run with seed
 * `seed`. First waits for a save in flight. If the function fails, no incomplete save exists. All
 * processes of a run must call this function. */
FSDPRT_API fsdprt_status fsdprt_saver_save(fsdprt_saver *saver, fsdprt_session *session,
                                           uint64_t step, uint64_t seed, fsdprt_error *error);

/* Starts a save as fsdprt_saver_save does, but returns when the states have been copied. A thread
 * writes the copy while programs run. Fails if the artifact was compiled without --async-save. Only
 * one saver of a session may have a save in flight, because the session has space for only one copy
 * of the states. Call fsdprt_saver_poll between later steps, and fsdprt_saver_wait after the last
 * step. All processes of a run must call these functions at the same points. */
FSDPRT_API fsdprt_status fsdprt_saver_start(fsdprt_saver *saver, fsdprt_session *session,
                                            uint64_t step, uint64_t seed, fsdprt_error *error);
/* Continues a save in flight, without waiting. If the save has failed, fails in all processes. Sets
 * *busy to 1 if a save is still in flight, and otherwise to 0. */
FSDPRT_API fsdprt_status fsdprt_saver_poll(fsdprt_saver *saver, fsdprt_session *session,
                                           int32_t *busy, fsdprt_error *error);
/* If a save is in flight, waits until it is complete. If the save has failed, fails in all
 * processes. */
FSDPRT_API fsdprt_status fsdprt_saver_wait(fsdprt_saver *saver, fsdprt_session *session,
                                           fsdprt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_TRAIN_H */
