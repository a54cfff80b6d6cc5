//===- FaultInjection.cpp - Faults of a session, for tests ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "testing/faults/FaultInjection.h"
#include "core/DType.h"
#include "core/Error.h"
#include "execute/SessionHooks.h"
#include <cmath>
#include <optional>

using namespace fsdprt;

/// Returns the first reduce-scatter of the program 'step'. If the program has no reduce-scatter,
/// returns its largest all-reduce.
static std::optional<uint32_t> gradientReduction(const RankGroup &ranks) {
  std::optional<uint32_t> largest;
  const fb::Program *step = ranks.getArtifact().program("step");
  if (!step)
    return largest;
  const Communicator &communicator = ranks.getCommunicator();
  for (const Instruction &instruction : ranks.instructionsOf(*step)) {
    if (instruction.kind != fb::Body::Collective)
      continue;
    const CollectiveKey &key = communicator.getKey(instruction.collective);
    if (key.kind == fb::CollectiveKind::reduce_scatter)
      return instruction.collective;
    if (key.kind == fb::CollectiveKind::all_reduce &&
        (!largest || key.count > communicator.getKey(*largest).count))
      largest = instruction.collective;
  }
  return largest;
}

namespace {
/// Injects the fault when the faulty rank reaches the step and phase of the fault.
class FaultInjector : public RankObserver {
public:
  FaultInjector(const RankFault &fault, std::optional<uint32_t> gradient)
      : fault(fault), gradient(gradient) {}

  void beforeCommand(const RankRun &run, const Instruction &instruction) override {
    if (instruction.kind == fb::Body::Launch && isAt(RankFault::Phase::compute, run))
      fault.inject();
  }

  void beforeReduction(const RankRun &run, const Instruction &instruction,
                       uint64_t source) override {
    if (fault.kind != RankFault::Kind::nan || instruction.collective != gradient ||
        !isAt(RankFault::Phase::reduce, run))
      return;
    DType type = static_cast<const fb::Collective *>(instruction.body)->dtype();
    std::byte number[8];
    storeElement(type, NAN, number);
    run.executor->write(source, number, sizeOf(type));
  }

  void afterStart(const RankRun &run, const Instruction &instruction) override {
    fb::CollectiveKind kind = static_cast<const fb::Collective *>(instruction.body)->kind();
    bool reduces =
        kind == fb::CollectiveKind::reduce_scatter || kind == fb::CollectiveKind::all_reduce;
    if (isAt(reduces ? RankFault::Phase::reduce : RankFault::Phase::gather, run))
      fault.inject();
  }

private:
  bool isAt(RankFault::Phase phase, const RankRun &run) const {
    return run.isStep && fault.isAt(phase, run.rank, run.number);
  }

  RankFault fault;
  std::optional<uint32_t> gradient;
};
} // namespace

void fsdprt::injectFaults(const InjectedFaults &faults) {
  SessionHooks hooks;
  hooks.onlyKinds = faults.onlyKinds;
  hooks.seesCommands = !faults.rankFault.empty();
  std::optional<RankFault> fault;
  if (!faults.rankFault.empty())
    fault = RankFault::parse(faults.rankFault);
  hooks.prepare = [fault, dropped = faults.dropGradientOfRank](RankGroup &ranks) {
    std::optional<uint32_t> gradient = gradientReduction(ranks);
    if (dropped && (!gradient || dropped > ranks.ranks()))
      badInput("%s: expected a reduction and a rank whose gradient can be dropped, found none",
               ranks.getArtifact().getFile().c_str());
    if (dropped)
      ranks.getCommunicator().dropContribution(*gradient, dropped - 1);
    if (fault)
      ranks.attach(std::make_shared<FaultInjector>(*fault, gradient));
  };
  nextSessionHooks() = hooks;
}
