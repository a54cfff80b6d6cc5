//===- NullDevice.cpp - Walks the programs of all ranks ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A split divides an array into pieces, and Mesh::pieceOf returns the index of a rank's piece. The
// byte ranges that the commands of a rank access depend on the rank only through these indices.
// Ranks that have equal indices in all splits that the programs use therefore access equal ranges.
// Such ranks have the same kind, and the commands of only one rank of each kind are walked.
//
//===----------------------------------------------------------------------===//

#include "null/NullDevice.h"
#include "artifact/Verifier.h"
#include "core/Error.h"
#include <algorithm>
#include <set>

using namespace fsdprt;

static constexpr size_t mostKinds = 64; // maximum number of kinds of ranks that are walked

namespace {
using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;
/// The indices of a rank's pieces, one index per split.
using Kind = std::vector<uint64_t>;

/// Ranks of one manifest that have the same kind.
struct Ranks {
  uint64_t first;
  std::vector<uint64_t> all;
};

class NullDevice {
public:
  NullDevice(const Artifact &artifact, const NullOptions &options)
      : artifact(artifact), options(options) {}
  NullResult run();

private:
  const fb::Manifest &manifestOf(uint64_t rank) const {
    auto peer = options.peers.find(rank);
    return peer == options.peers.end() ? artifact.manifest() : peer->second->manifest();
  }
  void checkPeers() const;
  void checkPlaces(const fb::Manifest &manifest);
  void checkAllOrders();
  void walkRanks(const fb::Manifest &manifest, const std::vector<uint64_t> &ranks);
  void walkAs(const fb::Manifest &manifest, const Mesh &mesh, const Ranks &ranks, bool reference);
  void walkInits(const fb::Manifest &manifest, const std::vector<uint64_t> &ranks,
                 const std::set<uint64_t> &walked);
  void add(const WalkCounts &counts);

  const Artifact &artifact;
  const NullOptions &options;
  Findings findings;
  NullResult result;
};
} // namespace

static void addSplit(const fb::Slice *slice, std::set<uint64_t> &splits) {
  if (slice && slice->piece())
    splits.insert(slice->split());
}

static void findSplits(const Commands *commands, std::set<uint64_t> &splits) {
  for (uint32_t i = 0; commands && i < commands->size(); ++i) {
    const fb::Command &command = *commands->Get(i);
    if (const fb::Launch *launch = command.body_as_Launch())
      for (uint32_t b = 0; launch->bindings() && b < launch->bindings()->size(); ++b)
        addSplit(launch->bindings()->Get(b), splits);
    else if (const fb::Collective *collective = command.body_as_Collective()) {
      addSplit(collective->source(), splits);
      addSplit(collective->target(), splits);
    } else if (const fb::Copy *copy = command.body_as_Copy()) {
      addSplit(copy->source(), splits);
      addSplit(copy->target(), splits);
    } else if (const fb::Fill *fill = command.body_as_Fill())
      addSplit(fill->target(), splits);
    else if (const fb::Loop *loop = command.body_as_Loop())
      findSplits(loop->body(), splits);
  }
}

/// Groups `ranks` by kind. If `inits` is true, ranks of the same kind also have equal indices in
/// the splits of states. These indices determine the parts of parameters that `init` initialises.
static std::vector<Ranks> findKinds(const fb::Manifest &manifest, const Mesh &mesh,
                                    const std::vector<uint64_t> &ranks, bool inits) {
  std::set<uint64_t> splits;
  for (const fb::Program *program : *manifest.programs()) {
    if (isReferenceProgram(program->name()->str()))
      continue;
    findSplits(program->commands(), splits);
    const auto *states = manifest.layouts()->Get(program->layout())->states();
    for (uint32_t i = 0; inits && states && i < states->size(); ++i)
      splits.insert(static_cast<uint64_t>(states->Get(i)->split()));
  }
  std::map<Kind, size_t> numbers;
  std::vector<Ranks> kinds;
  for (uint64_t rank : ranks) {
    Kind kind;
    for (uint64_t split : splits)
      kind.push_back(mesh.pieceOf(split, rank));
    auto [entry, isNew] = numbers.emplace(kind, kinds.size());
    if (isNew)
      kinds.push_back({rank, {}});
    kinds[entry->second].all.push_back(rank);
  }
  return kinds;
}

/// Returns all kinds, or a sample of `mostKinds` that includes the first and the last kind.
static std::vector<Ranks> choose(std::vector<Ranks> kinds) {
  if (kinds.size() <= mostKinds)
    return kinds;
  std::vector<Ranks> chosen;
  for (size_t i = 0; i < mostKinds; ++i)
    chosen.push_back(std::move(kinds[i * (kinds.size() - 1) / (mostKinds - 1)]));
  return chosen;
}

static std::string nameOf(const Ranks &ranks) {
  size_t count = ranks.all.size();
  if (count == 1)
    return format("rank %llu", (unsigned long long)ranks.first);
  bool isRow = ranks.all.back() - ranks.first + 1 == count;
  return isRow ? format("ranks %llu to %llu", (unsigned long long)ranks.first,
                        (unsigned long long)ranks.all.back())
               : format("%zu ranks, such as %llu,", count, (unsigned long long)ranks.first);
}

void NullDevice::add(const WalkCounts &counts) {
  result.counts.commands += counts.commands;
  result.counts.events += counts.events;
  result.counts.bytes += counts.bytes;
}

static const fb::Program *find(const fb::Manifest &manifest, const std::string &name) {
  for (const fb::Program *program : *manifest.programs())
    if (program->name()->str() == name)
      return program;
  return nullptr;
}

/// Walks the commands of two sessions: the first begins with initial values, and the second resumes
/// from a save.
void NullDevice::walkAs(const fb::Manifest &manifest, const Mesh &mesh, const Ranks &ranks,
                        bool reference) {
  const fb::Program *init = find(manifest, reference ? "reference_init" : "init");
  const fb::Program *step = find(manifest, reference ? "reference" : "step");
  std::vector<const fb::Program *> others;
  for (const fb::Program *program : *manifest.programs())
    if (isReferenceProgram(program->name()->str()) == reference && program != init &&
        program != step)
      others.push_back(program);
  const fb::Program *some = step ? step : init ? init : others.empty() ? nullptr : others[0];
  if (!some)
    return;
  const fb::Layout &layout = *manifest.layouts()->Get(some->layout());
  std::string stepName = reference ? "reference step" : "step";
  for (bool resumed : {false, true}) {
    RankWalk walk(manifest, layout, mesh, ranks.first,
                  reference ? "the unsharded rank" : nameOf(ranks), findings);
    walk.begin();
    if (init && !resumed)
      walk.run(*init, init->name()->str());
    else
      walk.restore();
    const char *behind = resumed ? " of a resumed run" : "";
    for (uint64_t number = 1; number <= options.steps; ++number) {
      if (step)
        walk.run(*step, format("%s %llu%s", stepName.c_str(), (unsigned long long)number, behind));
      // All programs except `init` and `step` run once, after the first step.
      for (const fb::Program *other : others)
        if (number == 1)
          walk.run(*other, printable(other->name()->str()) + behind);
    }
    walk.save();
    add(walk.getCounts());
  }
}

/// Groups the ranks by the parts of parameters that `init` initialises. Walks `init` for one rank
/// of each group, unless walkAs() has walked this rank.
void NullDevice::walkInits(const fb::Manifest &manifest, const std::vector<uint64_t> &ranks,
                           const std::set<uint64_t> &walked) {
  const fb::Program *init = find(manifest, "init");
  if (!init)
    return;
  const fb::Layout &layout = *manifest.layouts()->Get(init->layout());
  for (const Ranks &some : findKinds(manifest, artifact.getMesh(), ranks, true)) {
    if (walked.count(some.first))
      continue;
    RankWalk walk(manifest, layout, artifact.getMesh(), some.first, nameOf(some), findings);
    walk.begin();
    walk.run(*init, "init");
    walk.save();
    add(walk.getCounts());
  }
}

void NullDevice::walkRanks(const fb::Manifest &manifest, const std::vector<uint64_t> &ranks) {
  std::vector<Ranks> kinds = findKinds(manifest, artifact.getMesh(), ranks, false);
  result.kinds += kinds.size();
  std::set<uint64_t> walked;
  for (const Ranks &some : choose(std::move(kinds))) {
    walkAs(manifest, artifact.getMesh(), some, false);
    walked.insert(some.first);
  }
  result.walked += walked.size();
  walkInits(manifest, ranks, walked);
}

void NullDevice::checkPeers() const {
  for (const auto &[rank, peer] : options.peers) {
    if (rank >= artifact.getMesh().ranks())
      badInput("expected a rank below %llu, found %llu",
               (unsigned long long)artifact.getMesh().ranks(), (unsigned long long)rank);
    if (peer->getMesh().text() != artifact.getMesh().text())
      badInput("%s: expected an artifact for mesh %s, as %s, found %s", peer->getFile().c_str(),
               artifact.getMesh().text().c_str(), artifact.getFile().c_str(),
               peer->getMesh().text().c_str());
  }
}

/// Checks for each GPU kernel that the kernel's tensor maps, and the matrices of its products by
/// cuBLASLt, lie within the bindings of the kernel. The check does not depend on the offsets of the
/// bindings.
void NullDevice::checkPlaces(const fb::Manifest &manifest) {
  for (uint32_t i = 0; manifest.gpu() && manifest.kernels() && i < manifest.kernels()->size();
       ++i) {
    const fb::Kernel &kernel = *manifest.kernels()->Get(i);
    for (uint32_t p = 0; p < kernel.phases()->size(); ++p)
      if (std::string problem = problemOfPlaces(kernel, *kernel.phases()->Get(p)); !problem.empty())
        findings.add(Fault::bounds, format("kernel %u phase %u", i, p),
                     format("kernel '%s', phase %u: ", printable(kernel.name()->str()).c_str(), p) +
                         problem);
  }
}

void NullDevice::checkAllOrders() {
  std::vector<const fb::Manifest *> manifests;
  for (uint64_t rank = 0; rank < artifact.getMesh().ranks(); ++rank)
    manifests.push_back(&manifestOf(rank));
  for (const fb::Program *program : *artifact.manifest().programs()) {
    std::string name = program->name()->str();
    if (isReferenceProgram(name))
      continue;
    OrderCounts counts = checkOrder(manifests, artifact.getMesh(), name, findings);
    result.order.collectives += counts.collectives;
    result.order.communicators = std::max(result.order.communicators, counts.communicators);
  }
}

NullResult NullDevice::run() {
  checkPeers();
  result.ranks = artifact.getMesh().ranks();
  for (uint32_t i = 0; i < artifact.manifest().layouts()->size(); ++i)
    LiveBuffers(artifact.manifest(), *artifact.manifest().layouts()->Get(i)).check(findings, i);
  checkAllOrders();
  std::map<const fb::Manifest *, std::vector<uint64_t>> ranks;
  for (uint64_t rank = 0; rank < result.ranks; ++rank)
    ranks[&manifestOf(rank)].push_back(rank);
  for (const auto &[manifest, some] : ranks) {
    checkPlaces(*manifest);
    walkRanks(*manifest, some);
  }
  walkAs(artifact.manifest(), artifact.getMesh().solo(), {0, {0}}, true);
  result.findings = findings.all();
  return std::move(result);
}

NullResult fsdprt::walkPrograms(const Artifact &artifact, const NullOptions &options) {
  return NullDevice(artifact, options).run();
}
