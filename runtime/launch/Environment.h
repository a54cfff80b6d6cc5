//===- Environment.h - A process's rank in a launcher's environment -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the rank of a process from environment variables that a launcher has set. If the variables
// of several launchers are set, the first of these launchers in the list below determines the rank.
// An outer launcher may start an inner launcher once per machine. The inner launcher precedes the
// outer launcher in the list, because the ranks of the outer launcher then only number the
// machines:
//
//     torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
//     Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//     PMI        PMI_RANK PMI_SIZE                                  (MPICH, Intel MPI)
//     Slurm      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID             (in a step: SLURM_STEP_ID)
//
// Ranks usually connect over TCP at MASTER_ADDR and MASTER_PORT. They connect over a Unix socket if
// torchrun itself listens at that port (TORCHELASTIC_USE_AGENT_STORE), or if a Slurm step on a
// single machine has no MASTER_ADDR. The name of the socket contains the launcher's id of the run.
//
// A job id distinguishes two jobs that use the same address. The job id is the value of the first
// of these variables that is set:
//
//     FSDP_RUN_JOB_ID                           set by the user
//     TORCHELASTIC_RUN_ID, _RESTART_COUNT       torchrun; for its default, "none", the folder of
//                                               TORCHELASTIC_ERROR_FILE, which is unique for each
//                                               torchrun
//     PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid   mpirun, srun --mpi=pmix
//     SLURM_JOB_ID, SLURM_STEP_ID               without the step if another launcher numbers ranks
//
// If no job id is set, the processes of one session (getsid(2)) form one job.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_ENVIRONMENT_H
#define FSDPRT_LAUNCH_ENVIRONMENT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fsdprt {

/// Rank of a process that a launcher has started, and the address at which the ranks connect.
struct LaunchPlace {
  uint32_t rank = 0, ranks = 1;
  std::optional<uint32_t> localRank, localRanks; ///< rank and number of ranks on this machine
  std::string source;                            ///< text such as "torchrun's environment"
  bool hasMpi = false;                           ///< true if the launcher starts MPI processes
  std::string address;                           ///< host at which ranks connect, or empty
  uint32_t port = 0;
  std::string job;         ///< job id, such as "'7' (FSDP_RUN_JOB_ID)", or empty
  std::string session;     ///< session and namespace of the process, or empty
  std::string meetingName; ///< abstract name of a Unix socket that is used instead of `address`

  bool saysWhere() const { return !address.empty() || !meetingName.empty(); }

  /// Returns text such as "rank 1 of 4 from torchrun's environment".
  std::string text() const;
};

/// Returns the rank that a launcher has assigned to this process, or nullopt if there is no
/// launcher. `variable` returns the value of an environment variable. If `variable` is null,
/// getenv() is called instead. Throws Error if variables are invalid or contradict each other.
std::optional<LaunchPlace>
findLaunchPlace(const std::function<const char *(const char *)> &variable = nullptr);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_ENVIRONMENT_H
