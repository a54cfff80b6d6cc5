/*===- train.h - Launching, saving and resuming, in C -------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions for other programs that train, which do what fsdp-run does around a session: a process
// finds its rank, connects to the other ranks, saves and resumes. The rules of fsdprt.h apply here.
//
//   fsdprt_launch_join(artifact, ..., &launch)       null: no launcher started this process
//   fsdprt_launch_place(launch, &session_options)    backend, rank and channel
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

/* This process's place among the ranks that torchrun, mpirun, srun or a script started. */
typedef struct fsdprt_launch fsdprt_launch;

typedef struct fsdprt_launch_options {
  size_t struct_size;
  const char *program;       /* name for messages; NULL: "fsdprt" */
  const char *path;          /* path of the artifact, for messages */
  const char *device;        /* NULL: "cpu" */
  const char *backend;       /* NULL: chosen by the launcher's kind */
  double rendezvous_seconds; /* time limit for all ranks to arrive; 0: 60 */
  double heartbeat_seconds;  /* a rank is lost after this time without heartbeat; 0: 2 */
  double timeout_seconds;    /* watchdog timeout of a rank without progress; 0: 60 */
} fsdprt_launch_options;

/* Finds this process's rank in its environment (RANK and WORLD_SIZE, or MPI's and Slurm's
 * variables), checks that there are as many processes as `artifact` has ranks, and connects the
 * ranks of one machine. Sets *out to NULL if no launcher started this process, or if it is the only
 * process. In rank 0, forks the process that supervises the ranks. */
FSDPRT_API fsdprt_status fsdprt_launch_join(const fsdprt_artifact *artifact,
                                            const fsdprt_launch_options *options,
                                            fsdprt_launch **out, fsdprt_error *error);
/* Writes backend, control, rank, local_rank, ranks_on_machine and channel into the options of a
 * session. Strings live as long as `launch`. */
FSDPRT_API void fsdprt_launch_place(const fsdprt_launch *launch, fsdprt_session_options *options);
/* Ends the run of this rank and frees `launch`. If `status` is not FSDPRT_OK, tells the other ranks
 * of the failure `message`; then writes to `error`, if not NULL, the first failure of all ranks, as
 * the supervisor reports it. */
FSDPRT_API void fsdprt_launch_leave(fsdprt_launch *launch, fsdprt_status status,
                                    const char *message, fsdprt_error *error);

/*===- Saves: the complete state of a run ---------------------------------===*/

typedef struct fsdprt_resumed {
  size_t struct_size;
  uint64_t step, seed; /* of the save: the next step is step + 1 */
  char folder[4096];   /* of the save */
  char fallback[1024]; /* why this is not the newest save of the folder; "" when it is */
  char remark[1024];   /* how this run differs from that of the save; "" with the same artifact */
} fsdprt_resumed;

/* Finds a save, or the newest whole one of a folder of saves, checks it, and loads it into the
 * ranks here (and the reference, if `reference`), after the program 'init' has run. The save may be
 * of another mesh, strategy or storage of the same model and optimizer. `artifact_path` is for
 * messages. All processes of a run call it. */
FSDPRT_API fsdprt_status fsdprt_saves_resume(const fsdprt_artifact *artifact,
                                             fsdprt_session *session, const char *path,
                                             const char *artifact_path, int32_t reference,
                                             fsdprt_resumed *resumed, fsdprt_error *error);

/* Writes saves of one run into one folder. */
typedef struct fsdprt_saver fsdprt_saver;

/* Creates the folder and claims it for this process. `resumed` is the save from which this run
 * resumes, or NULL. Other saves in the folder must be of this run. Keeps the newest `keep` saves,
 * or all saves if `keep` is 0. All processes of a run must call it. */
FSDPRT_API fsdprt_status fsdprt_saver_open(const fsdprt_artifact *artifact,
                                           const fsdprt_session *session, const char *folder,
                                           const fsdprt_resumed *resumed, uint64_t keep,
                                           fsdprt_saver **out, fsdprt_error *error);
/* Ends a save in flight early, which then does not exist. The session must still exist. */
FSDPRT_API void fsdprt_saver_close(fsdprt_saver *saver);
/* Writes the save DIR/step-NNNNNNNN: the state of the ranks after step `step` of the run with seed
 * `seed`. The save is complete or does not exist. First waits for a save in flight. All processes
 * of a run must call it. */
FSDPRT_API fsdprt_status fsdprt_saver_save(fsdprt_saver *saver, fsdprt_session *session,
                                           uint64_t step, uint64_t seed, fsdprt_error *error);

/* Starts the same save and returns when the states are copied; a thread writes the copy while
 * programs run. Fails if the artifact was compiled without --async-save. Only one saver of a
 * session may have a save in flight, because there is one copy. Call fsdprt_saver_poll between
 * later steps, and fsdprt_saver_wait after the last one. All processes of a run must call these
 * functions at the same points. */
FSDPRT_API fsdprt_status fsdprt_saver_start(fsdprt_saver *saver, fsdprt_session *session,
                                            uint64_t step, uint64_t seed, fsdprt_error *error);
/* Continues a save in flight, without waiting. Reports its failure, in all processes. Sets *busy to
 * 1 if it is not complete yet, else to 0. */
FSDPRT_API fsdprt_status fsdprt_saver_poll(fsdprt_saver *saver, fsdprt_session *session,
                                           int32_t *busy, fsdprt_error *error);
/* Waits for the save in flight, if there is one, and reports its failure, in all processes. */
FSDPRT_API fsdprt_status fsdprt_saver_wait(fsdprt_saver *saver, fsdprt_session *session,
                                           fsdprt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* FSDPRT_TRAIN_H */
