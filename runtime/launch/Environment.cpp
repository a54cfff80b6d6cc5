//===- Environment.cpp - A process's rank in a launcher's environment -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the variables of launchers. The table `launchers` lists these variables. Throws Error if
// the value of a variable is not a number, or if the rank is set but the number of ranks is not.
//
//===----------------------------------------------------------------------===//

#include "launch/Environment.h"
#include "core/Error.h"
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace fsdprt;

namespace {
struct Launcher {
  const char *name;
  const char *present; ///< variable that must be set in addition to `rank`; null if none
  const char *rank, *ranks, *localRank, *localRanks;
  bool hasMpi;
};

using Variables = std::function<const char *(const char *)>;
} // namespace

static constexpr Launcher launchers[] = {
    {"torchrun", nullptr, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"Open MPI", nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"PMI", nullptr, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, false},
};

static std::optional<uint32_t> numberIn(const Variables &variable, const char *name) {
  const char *text = name ? variable(name) : nullptr;
  if (!text || !*text)
    return std::nullopt;
  uint32_t value = 0;
  auto [end, problem] = std::from_chars(text, text + std::strlen(text), value);
  if (problem != std::errc() || *end)
    badInput("the environment's %s: expected a whole number, found '%s'", name,
             printable(text).c_str());
  return value;
}

static std::string textOf(const Variables &variable, const char *name) {
  const char *text = variable(name);
  return text ? text : "";
}

/// Sets the address, or the name of the Unix socket, at which the ranks connect.
static void findMeetingPoint(const Variables &variable, LaunchPlace &place) {
  place.address = textOf(variable, "MASTER_ADDR");
  std::optional<uint32_t> port = numberIn(variable, "MASTER_PORT");
  if (port && (*port == 0 || *port > 65535))
    badInput("the environment's MASTER_PORT: expected a port from 1 to 65535, found %u", *port);
  place.port = port.value_or(0);
  if (!place.address.empty() && !port)
    badInput("the environment has MASTER_ADDR without MASTER_PORT: set both, or unset both");
  bool storeIsThere = textOf(variable, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!place.address.empty() && storeIsThere)
    place.meetingName =
        format("fsdp-run/torchrun/%s:%u/%.32s/%s", place.address.substr(0, 32).c_str(), place.port,
               textOf(variable, "TORCHELASTIC_RUN_ID").c_str(),
               textOf(variable, "TORCHELASTIC_RESTART_COUNT").c_str());
  std::string machines = textOf(variable, "SLURM_STEP_NUM_NODES"),
              job = textOf(variable, "SLURM_JOB_ID");
  if (place.address.empty() && place.source == "Slurm's environment" && machines == "1" &&
      !job.empty())
    place.meetingName = "fsdp-run/slurm/" + job + "." + textOf(variable, "SLURM_STEP_ID");
}

/// If torchrun has given this rank the file FOLDER/RANK/error.json, returns FOLDER, which changes
/// when torchrun restarts the ranks. Returns an empty text unless all ranks are on this machine,
/// where a single torchrun has started them.
static std::string attemptFolder(const Variables &variable, const LaunchPlace &place) {
  std::string folder = textOf(variable, "TORCHELASTIC_ERROR_FILE");
  for (int level = 0; level < 2; ++level)
    folder.erase(std::min(folder.rfind('/'), folder.size()));
  return place.localRanks == place.ranks ? folder : "";
}

/// Returns `text` if it has at most 100 bytes. Otherwise returns its first and its last 50 bytes
/// with "..." between them.
static std::string shortened(const std::string &text) {
  constexpr size_t most = 100;
  return text.size() <= most
             ? text
             : text.substr(0, most / 2) + "..." + text.substr(text.size() - most / 2);
}

/// Returns a text that contains the job id and the variable or launcher that gave it. Returns an
/// empty text if there is no job id.
static std::string jobOf(const Variables &variable, const LaunchPlace &place) {
  auto named = [&](const std::string &id, const char *source) {
    return "'" + shortened(id) + "' (" + source + ")";
  };
  if (std::string id = textOf(variable, "FSDP_RUN_JOB_ID"); !id.empty())
    return named(id, "FSDP_RUN_JOB_ID");
  std::string torchrun = textOf(variable, "TORCHELASTIC_RUN_ID"),
              folder = attemptFolder(variable, place);
  std::string attempt = textOf(variable, "TORCHELASTIC_RESTART_COUNT");
  if (!torchrun.empty() && (torchrun != "none" || !folder.empty()))
    return named(torchrun != "none" ? torchrun : folder, "torchrun") +
           (attempt.empty() || attempt == "0" ? "" : " restarted " + shortened(attempt) + " times");
  for (const char *name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (std::string id = textOf(variable, name); !id.empty())
      return named(id, name);
  std::string slurm = textOf(variable, "SLURM_JOB_ID");
  if (slurm.empty())
    return "";
  bool isStep = place.source == "Slurm's environment";
  return named(slurm + (isStep ? "." + textOf(variable, "SLURM_STEP_ID") : ""), "Slurm");
}

static std::string sessionOf() {
  char processes[64] = "";
  [[maybe_unused]] ssize_t size = readlink("/proc/self/ns/pid", processes, sizeof processes - 1);
  return std::to_string(getsid(0)) + (*processes ? " of " : "") + processes;
}

static void check(const Launcher &launcher, const LaunchPlace &place) {
  if (place.ranks == 0)
    badInput("%s: expected %s of at least 1, found 0", place.source.c_str(), launcher.ranks);
  if (place.rank >= place.ranks)
    badInput("%s: expected %s below %s, from 0 to %u, found %s=%u and %s=%u", place.source.c_str(),
             launcher.rank, launcher.ranks, place.ranks - 1, launcher.rank, place.rank,
             launcher.ranks, place.ranks);
  if (place.localRanks && (*place.localRanks == 0 || *place.localRanks > place.ranks))
    badInput("%s: expected %s from 1 to the %u of %s, found %u", place.source.c_str(),
             launcher.localRanks, place.ranks, launcher.ranks, *place.localRanks);
  uint32_t most = place.localRanks.value_or(place.ranks);
  if (place.localRank && *place.localRank >= most)
    badInput("%s: expected %s below %u, found %u", place.source.c_str(), launcher.localRank, most,
             *place.localRank);
}

std::optional<LaunchPlace> fsdprt::findLaunchPlace(const Variables &given) {
  Variables variable =
      given ? given : [](const char *name) -> const char * { return std::getenv(name); };
  for (const Launcher &launcher : launchers) {
    if (launcher.present && !variable(launcher.present))
      continue;
    std::optional<uint32_t> rank = numberIn(variable, launcher.rank),
                            ranks = numberIn(variable, launcher.ranks);
    if (!rank && !ranks)
      continue;
    if (!rank || !ranks)
      badInput("the environment has %s without %s; %s sets both: set both, or unset both",
               rank ? launcher.rank : launcher.ranks, rank ? launcher.ranks : launcher.rank,
               launcher.name);
    LaunchPlace place;
    place.rank = *rank;
    place.ranks = *ranks;
    place.localRank = numberIn(variable, launcher.localRank);
    place.localRanks = numberIn(variable, launcher.localRanks);
    place.source = std::string(launcher.name) + "'s environment";
    place.hasMpi = launcher.hasMpi;
    findMeetingPoint(variable, place);
    check(launcher, place);
    place.job = jobOf(variable, place);
    if (!given)
      place.session = sessionOf();
    return place;
  }
  return std::nullopt;
}

std::string LaunchPlace::text() const {
  return format("rank %u of %u from %s", rank, ranks, source.c_str());
}
