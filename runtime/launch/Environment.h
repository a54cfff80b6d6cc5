//===- Environment.h - Which rank a launcher made this process ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launchers say it in variables. The first of these that is there counts; a launcher that was
// started by another one, once per machine say, is the inner one, and the outer one's variables are
// of machines:
//
//     torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
//     Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//     PMI        PMI_RANK PMI_SIZE                                  (MPICH, Intel MPI)
//     Slurm      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID             (in a step: SLURM_STEP_ID)
//
// Where they meet is MASTER_ADDR and MASTER_PORT. Two launchers say it otherwise: torchrun mostly
// occupies that port with a store of its own (TORCHELASTIC_USE_AGENT_STORE), and a step of Slurm on
// one machine needs no port. Ranks then meet at a Unix socket, whose name is made of what the
// launcher calls the run.
//
// Which job a process is of, so that two jobs at one address are kept apart, is the first of these
// that is there:
//
//     FSDP_RUN_JOB_ID                           given by the user
//     TORCHELASTIC_RUN_ID, _RESTART_COUNT       torchrun; its default, "none", with the folder of
//                                               TORCHELASTIC_ERROR_FILE, which each torchrun makes
//                                               for itself
//     PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid   mpirun, srun --mpi=pmix
//     SLURM_JOB_ID, SLURM_STEP_ID               the step only where Slurm numbers the ranks
//     the session of the process (getsid)       nothing names the job: ranks of one session count
//                                               as one job
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_ENVIRONMENT_H
#define FSDPRT_LAUNCH_ENVIRONMENT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fsdprt {

struct LaunchPlace {
  uint32_t rank = 0, ranks = 1;
  std::optional<uint32_t> localRank, localRanks; ///< on its machine
  std::string source;                            ///< "torchrun's environment"
  bool hasMpi = false;                           ///< the launcher is an MPI's
  std::string address;                           ///< where ranks meet; empty: nothing was said
  uint32_t port = 0;
  std::string job;     ///< "'7' (FSDP_RUN_JOB_ID)"; empty: nothing names it
  std::string session; ///< of the process, and its process namespace; empty: not asked for
  std::string
      meetingName; ///< where ranks of one machine meet instead: the abstract name of a Unix socket

  bool saysWhere() const { return !address.empty() || !meetingName.empty(); }

  /// "rank 1 of 4 from torchrun's environment".
  std::string text() const;
};

/// Null gives the variables, and the session, of the process. Throws Error when they contradict
/// themselves. Nothing: no launcher.
std::optional<LaunchPlace>
findLaunchPlace(const std::function<const char *(const char *)> &variable = nullptr);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_ENVIRONMENT_H
