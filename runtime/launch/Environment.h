//===- Environment.h - A process's rank in a launcher's environment -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launchers tell a process its rank in environment variables. The first launcher in this list whose
// variables are set is used. If one launcher starts another, for example once per machine, the
// inner launcher's variables are used, because the outer launcher numbers machines:
//
//     torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
//     Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//     PMI        PMI_RANK PMI_SIZE                                  (MPICH, Intel MPI)
//     Slurm      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID             (in a step: SLURM_STEP_ID)
//
// Ranks connect at MASTER_ADDR and MASTER_PORT, with two exceptions: torchrun usually occupies that
// port with a store of its own (TORCHELASTIC_USE_AGENT_STORE), and a Slurm step on one machine
// needs no port. In both cases ranks connect at a Unix socket, whose name is derived from the
// launcher's name of the run.
//
// A job id distinguishes two jobs at one address. It is the first entry of this list that is set:
//
//     FSDP_RUN_JOB_ID                           set by the user
//     TORCHELASTIC_RUN_ID, _RESTART_COUNT       torchrun; for its default, "none", the folder of
//                                               TORCHELASTIC_ERROR_FILE, which is unique for each
//                                               torchrun
//     PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid   mpirun, srun --mpi=pmix
//     SLURM_JOB_ID, SLURM_STEP_ID               the step only if Slurm numbers the ranks
//     the session of the process (getsid)       without a job id: ranks of one session form one job
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_ENVIRONMENT_H
#define FSDPRT_LAUNCH_ENVIRONMENT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fsdprt {

/// A process's place in a launched job.
struct LaunchPlace {
  uint32_t rank = 0, ranks = 1;
  std::optional<uint32_t> localRank, localRanks; ///< on its machine
  std::string source;                            ///< such as "torchrun's environment"
  bool hasMpi = false;                           ///< the launcher is an MPI launcher
  std::string address;                           ///< at which ranks connect; empty: none
  uint32_t port = 0;
  std::string job;         ///< job id, such as "'7' (FSDP_RUN_JOB_ID)"; empty: none
  std::string session;     ///< session and namespace of the process; empty: not determined
  std::string meetingName; ///< abstract name of the Unix socket used instead of the address

  bool saysWhere() const { return !address.empty() || !meetingName.empty(); }

  /// Returns text such as "rank 1 of 4 from torchrun's environment".
  std::string text() const;
};

/// Returns the place that a launcher gives this process, or nothing without a launcher. `variable`
/// looks up variables; if it is null, the process's environment is read. Throws Error if variables
/// are invalid or contradict each other.
std::optional<LaunchPlace>
findLaunchPlace(const std::function<const char *(const char *)> &variable = nullptr);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_ENVIRONMENT_H
