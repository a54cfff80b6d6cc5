//===- Environment.cpp - Which rank a launcher made this process -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One table of names, read strictly: a variable that is no number, or a rank without a number of ranks, is refused.
//
//===----------------------------------------------------------------------===//

#include "launch/Environment.h"
#include "core/Error.h"
#include <charconv>
#include <cstdlib>
#include <cstring>

using namespace fsdprt;

namespace {
struct Launcher {
  const char *name;
  const char *present; // beside it only counts when this is there; null: always
  const char *rank, *ranks, *localRank, *localRanks;
  bool hasMpi, saysWhere;
};

using Variables = std::function<const char *(const char *)>;
} // namespace

static constexpr Launcher launchers[] = {
    {"torchrun", nullptr, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false, true},
    {"Open MPI", nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true, false},
    {"PMI", nullptr, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true, false},
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, false, true},
};

static std::optional<uint32_t> numberIn(const Variables &variable, const char *name) {
  const char *text = name ? variable(name) : nullptr;
  if (!text || !*text)
    return std::nullopt;
  uint32_t value = 0;
  auto [end, problem] = std::from_chars(text, text + std::strlen(text), value);
  if (problem != std::errc() || *end)
    badInput("the environment's %s: expected a whole number, found '%s'", name, printable(text).c_str());
  return value;
}

static void findMeetingPoint(const Variables &variable, LaunchPlace &place) {
  if (const char *address = variable("MASTER_ADDR"))
    place.address = address;
  std::optional<uint32_t> port = numberIn(variable, "MASTER_PORT");
  if (port && (*port == 0 || *port > 65535))
    badInput("the environment's MASTER_PORT: expected a port from 1 to 65535, found %u", *port);
  place.port = port.value_or(0);
}

static void check(const Launcher &launcher, const LaunchPlace &place) {
  if (place.ranks == 0 || place.rank >= place.ranks)
    badInput("%s: expected %s below %s, found %u of %u", place.source.c_str(), launcher.rank, launcher.ranks, place.rank,
             place.ranks);
  if (place.localRanks && (*place.localRanks == 0 || *place.localRanks > place.ranks))
    badInput("%s: expected %s from 1 to the %u of %s, found %u", place.source.c_str(), launcher.localRanks, place.ranks,
             launcher.ranks, *place.localRanks);
  uint32_t most = place.localRanks.value_or(place.ranks);
  if (place.localRank && *place.localRank >= most)
    badInput("%s: expected %s below %u, found %u", place.source.c_str(), launcher.localRank, most, *place.localRank);
}

std::optional<LaunchPlace> fsdprt::findLaunchPlace(const Variables &given) {
  Variables variable = given ? given : [](const char *name) -> const char * { return std::getenv(name); };
  for (const Launcher &launcher : launchers) {
    if (launcher.present && !variable(launcher.present))
      continue;
    std::optional<uint32_t> rank = numberIn(variable, launcher.rank), ranks = numberIn(variable, launcher.ranks);
    if (!rank && !ranks)
      continue;
    if (!rank || !ranks)
      badInput("the environment has %s and no %s; %s sets both, so set or unset both", rank ? launcher.rank : launcher.ranks,
               rank ? launcher.ranks : launcher.rank, launcher.name);
    LaunchPlace place;
    place.rank = *rank;
    place.ranks = *ranks;
    place.localRank = numberIn(variable, launcher.localRank);
    place.localRanks = numberIn(variable, launcher.localRanks);
    place.source = std::string(launcher.name) + "'s environment";
    place.hasMpi = launcher.hasMpi;
    if (launcher.saysWhere)
      findMeetingPoint(variable, place);
    check(launcher, place);
    return place;
  }
  return std::nullopt;
}

std::string LaunchPlace::text() const { return format("rank %u of %u from %s", rank, ranks, source.c_str()); }
