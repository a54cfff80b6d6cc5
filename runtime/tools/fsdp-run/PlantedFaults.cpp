//===- PlantedFaults.cpp - Injected faults ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PlantedFaults.h"
#include <cstdlib>
#include <cstring>

using namespace fsdprt;

PlantedFaults::PlantedFaults(const Options &options) : fault(options.fault) {
  if (options.launchedResume.empty())
    faults.rankFault = options.rankFault;
  faults.onlyKinds = options.onlyKinds;
}

void PlantedFaults::beforeSession(const TrainingRun &run, fsdprt_session_options &wanted) {
  if (!faults.rankFault.empty()) {
    rankFault = RankFault::parse(faults.rankFault);
    if (rankFault.isAt(RankFault::Phase::start, wanted.rank, 0))
      rankFault.inject();
  }
  faults.dropGradientOfRank = fault == Options::Fault::dropGradient ? run.ranks : 0;
  injectFaults(faults);
}

void PlantedFaults::beforeTraining(const TrainingRun &run) {
  if (fault == Options::Fault::skipShardElement)
    chooseElement(run);
}

/// Selects an element of a trainable parameter, on the last rank that has elements of such a
/// parameter. Prefers parameters with one dimension, because all elements of such a parameter have
/// gradients.
void PlantedFaults::chooseElement(const TrainingRun &run) {
  auto nothing = [](void *, void *, size_t) {};
  for (bool vectors : {true, false})
    for (faultRank = run.ranks; faultRank-- > 0;)
      for (faultParam = run.info.params; faultParam-- > 0;) {
        fsdprt_param_info param = {};
        param.struct_size = sizeof param;
        fsdprt_artifact_get_param(run.artifact, faultParam, &param);
        if (param.trainable && (!vectors || param.rank == 1) &&
            fsdprt_session_poke_shard(run.session.get(), faultRank, faultParam, nothing, nullptr,
                                      nullptr) == FSDPRT_OK)
          return;
      }
  badInput("%s: has no parameter that is trained", run.options.artifact.c_str());
}

using Poke = void (*)(void *, void *, size_t);

void PlantedFaults::beforeStep(const TrainingRun &run) {
  auto save = [](void *to, void *element, size_t size) { std::memcpy(to, element, size); };
  if (hasElement(run))
    call(fsdprt_session_poke_shard, run.session.get(), faultRank, faultParam,
         static_cast<Poke>(save), static_cast<void *>(savedElement));
}

void PlantedFaults::afterStep(const TrainingRun &run) {
  auto restore = [](void *from, void *element, size_t size) { std::memcpy(element, from, size); };
  if (hasElement(run))
    call(fsdprt_session_poke_shard, run.session.get(), faultRank, faultParam,
         static_cast<Poke>(restore), static_cast<void *>(savedElement));
  if (fault == Options::Fault::allocate) {
    void *memory = std::malloc(24);
    // The compiler would remove the allocation if the memory were not used.
    asm volatile("" : : "r"(memory) : "memory");
    std::free(memory);
  }
}

void PlantedFaults::duringSave(const TrainingRun &run) {
  for (uint32_t rank = run.firstRank; rank < run.lastRank; ++rank)
    if (rankFault.isAt(RankFault::Phase::save, rank, run.stepsDone))
      rankFault.inject();
}
