//===- ElasticArtifacts.cpp - Artifacts for other numbers of ranks -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Each file *.fsdp in the folder is opened and checked. A file is ignored if it cannot be
//     opened, for example because it was compiled for another processor. The reason is reported
//     only if the file is named after the given artifact. For example, gpt.shard3.fsdp is named
//     after gpt.fsdp.
//  2. An artifact is a candidate if it has the same target as the given artifact, a program 'step',
//     and a permitted number of ranks. It must be possible to load the parameters and optimizer
//     states of a candidate from a save of the given artifact.
//  3. Candidates for the same number of ranks are compared by three criteria. The first is whether
//     the file is named after the given artifact. The second is the number of compiler options that
//     differ, without mesh and grad-accum. The third is the difference in tokens per step, over all
//     ranks.
//
//===----------------------------------------------------------------------===//

#include "train/ElasticArtifacts.h"
#include "train/Handles.h"
#include "train/SaveMapping.h"
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <tuple>

using namespace fsdprt;
using ull = unsigned long long;
namespace fs = std::filesystem;

namespace {
struct Candidate {
  std::string path, target;
  uint64_t ranks = 0, tokens = 0; ///< `tokens`: number of tokens per step, summed over all ranks
  bool trains = false;
  bool copies = false; ///< true if the artifact was compiled with --async-save
  SaveIndex layout;
};
/// Measures how much a candidate differs from the given artifact. The first member is true if the
/// file of the candidate is not named after the artifact. The other members are the number of
/// compiler options that differ, and the difference between the numbers of tokens per step.
using Distance = std::tuple<bool, size_t, uint64_t>;
} // namespace

static Candidate describe(const std::string &path) {
  fsdprt_artifact *opened = nullptr;
  call(fsdprt_artifact_open, path.c_str(), &opened);
  ArtifactHandle artifact(opened);
  fsdprt_artifact_info info = {};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(opened, &info);
  bool trains = fsdprt_artifact_has_program(opened, "step");
  return {path,
          info.target,
          info.ranks,
          info.tokens_per_rank * info.data_ranks,
          trains,
          fsdprt_artifact_has_program(opened, "snapshot") != 0,
          describeLayout(opened)};
}

/// Throws Error if a run of `other` cannot resume the saves of `own`.
static void expectFit(const Candidate &own, const Candidate &other) {
  if (!other.trains)
    badInput("%s: has no program 'step'", other.path.c_str());
  if (own.target != other.target)
    badInput("%s: expected target '%s', found '%s'", other.path.c_str(), own.target.c_str(),
             other.target.c_str());
  SaveMapping(own.layout, other.layout, own.path, other.path);
}

/// Returns true if the file `other` is named after the artifact `own`. For example, gpt.shard3.fsdp
/// is named after gpt.fsdp.
static bool isNamedAfter(const std::string &own, const std::string &other) {
  std::string stem = fs::path(own).stem().string() + ".";
  return fs::path(other).filename().string().rfind(stem, 0) == 0;
}

/// Returns all compiler options of an artifact except mesh and grad-accum.
static std::set<std::string> optionsOf(const Candidate &artifact) {
  std::set<std::string> options;
  for (const std::string &option : artifact.layout.options)
    if (option.rfind("mesh=", 0) != 0 && option.rfind("grad-accum=", 0) != 0)
      options.insert(option);
  return options;
}

/// Returns how much `other` differs from the given artifact `own`. The candidate with the least
/// result is preferred.
static Distance distance(const Candidate &own, const Candidate &other) {
  std::set<std::string> mine = optionsOf(own), its = optionsOf(other);
  std::vector<std::string> differing;
  std::set_symmetric_difference(mine.begin(), mine.end(), its.begin(), its.end(),
                                std::back_inserter(differing));
  size_t options = differing.size() + (own.copies != other.copies);
  uint64_t tokens = std::max(own.tokens, other.tokens) - std::min(own.tokens, other.tokens);
  return {!isNamedAfter(own.path, other.path), options, tokens};
}

ElasticArtifacts::ElasticArtifacts(const std::string &path, std::string in, uint64_t least,
                                   uint64_t most)
    : folder(std::move(in)), least(least), most(most) {
  Candidate own = describe(path);
  if (own.ranks < least || own.ranks > most)
    badInput("--elastic=%llu:%llu: %s is for %llu rank%s; expected a range that includes it",
             (ull)least, (ull)most, path.c_str(), (ull)own.ranks, own.ranks == 1 ? "" : "s");
  std::map<uint64_t, std::map<Distance, std::set<std::string>>> found;
  std::error_code error, ofFile;
  fs::directory_iterator at(folder.empty() ? "." : folder, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".fsdp" || !at->is_regular_file(ofFile))
      continue;
    std::string file = (folder.empty() ? at->path().filename() : at->path()).string();
    try {
      Candidate other = describe(file);
      if (other.ranks < least || other.ranks > most || other.ranks == own.ranks)
        continue;
      expectFit(own, other);
      found[other.ranks][distance(own, other)].insert(other.path);
    } catch (const Error &problem) {
      if (isNamedAfter(path, file))
        reasons.push_back(problem.what());
    }
  }
  if (error)
    badInput("%s: cannot search for artifacts for --elastic: %s", folder.c_str(),
             error.message().c_str());
  artifacts[own.ranks] = path;
  for (const auto &[ranks, byDistance] : found) {
    const std::set<std::string> &best = byDistance.begin()->second;
    if (best.size() > 1)
      badInput("--elastic: expected one artifact for %llu rank%s of the model in %s, found %s and "
               "%s, which are equally near to it; remove one of them, or give a folder with one of "
               "them as --elastic-artifacts",
               (ull)ranks, ranks == 1 ? "" : "s", path.c_str(), best.begin()->c_str(),
               best.rbegin()->c_str());
    artifacts[ranks] = *best.begin();
  }
}

void ElasticArtifacts::fail(const std::string &wanted) const {
  badInput("--elastic=%llu:%llu: expected an artifact for %s, found those for %s; compile one "
           "with fsdp-compile --also-mesh=shard=N",
           (ull)least, (ull)most, wanted.c_str(), text().c_str());
}

void ElasticArtifacts::expectSeveral() const {
  if (artifacts.size() == 1)
    fail("another number of ranks");
}

const std::pair<const uint64_t, std::string> &ElasticArtifacts::forAtMost(uint64_t ranks) const {
  auto above = artifacts.upper_bound(ranks);
  if (above == artifacts.begin())
    fail(format("at most %llu rank%s", (ull)ranks, ranks == 1 ? "" : "s"));
  return *std::prev(above);
}

const std::string &ElasticArtifacts::forRanks(uint64_t ranks) const {
  auto found = artifacts.find(ranks);
  if (found == artifacts.end())
    fail(format("%llu rank%s", (ull)ranks, ranks == 1 ? "" : "s"));
  return found->second;
}

std::string ElasticArtifacts::text() const {
  std::string list;
  for (auto at = artifacts.rbegin(); at != artifacts.rend(); ++at)
    list += format("%s%llu rank%s: %s", list.empty() ? "" : ", ", (ull)at->first,
                   at->first == 1 ? "" : "s", at->second.c_str());
  return list;
}
