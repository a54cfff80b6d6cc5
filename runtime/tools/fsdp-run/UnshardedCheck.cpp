//===- UnshardedCheck.cpp - Is sharded the same as unsharded? ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reference program runs beside the ranks on an arena of its own: all parameters
// whole, the ranks' batches as its micro-batches, in rank order. After every step
// loss and gradient norm, after the last one every value of every state have to be
// the same bits. Two planted faults, which it has to find, are here too.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

static bool sameBits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void Trainer::stepReference(uint64_t number, const float *sharded) {
  setRate(FSDPRT_REFERENCE, sharded[FSDPRT_BLOCK_LR]);
  call(fsdprt_session_run, session.get(), "reference");
  float whole[FSDPRT_BLOCK_SIZE];
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session.get()),
       FSDPRT_REFERENCE, static_cast<float *>(whole));
  for (auto [index, name] :
       {std::pair(FSDPRT_BLOCK_LOSS, "loss"), std::pair(FSDPRT_BLOCK_GRAD_NORM, "gradient norm")}) {
    if (sameBits(sharded[index], whole[index]))
      continue;
    printer.line("check against unsharded failed: step %llu: %s is %.9g sharded and %.9g unsharded",
                 (ull)number, name, static_cast<double>(sharded[index]),
                 static_cast<double>(whole[index]));
    differs = true;
  }
}

static const char *roleName(fsdprt_state_role role) {
  static const char *const names[] = {"", "first moment of ", "second moment of ", "momentum of ",
                                      "master of "};
  return names[role];
}

void Trainer::compareWithReference() {
  fsdprt_comparison result = {};
  result.struct_size = sizeof result;
  call(fsdprt_session_compare, static_cast<const fsdprt_session *>(session.get()), &result);
  char a[32], b[32];
  if (!isRoot)
    return;
  if (result.equal) {
    printer.line("check against unsharded passed: %llu step%s on %u rank%s: losses, gradient "
                 "norms, %s parameter values "
                 "and %s optimizer "
                 "values, bit for bit",
                 (ull)stepsDone, stepsDone == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s",
                 grouped(result.parameter_elements, a), grouped(result.optimizer_elements, b));
    return;
  }
  fsdprt_param_info param = {};
  param.struct_size = sizeof param;
  fsdprt_artifact_get_param(artifact, result.param, &param);
  printer.line("check against unsharded failed: after step %llu: %s'%s' element %llu (rank %u) is "
               "%.17g sharded and "
               "%.17g unsharded",
               (ull)stepsDone, roleName(result.role), param.name, (ull)result.element, result.rank,
               result.sharded, result.unsharded);
  differs = true;
}

//===- A shard element that is never updated ------------------------------===//

/// Picks an element that is trained, on a rank as late as possible; of a vector if there is one,
/// since all of its elements have gradients.
void Trainer::planFault() {
  auto nothing = [](void *, void *, size_t) {};
  for (bool vectors : {true, false})
    for (faultRank = ranks; faultRank-- > 0;)
      for (faultParam = info.params; faultParam-- > 0;) {
        fsdprt_param_info param = {};
        param.struct_size = sizeof param;
        fsdprt_artifact_get_param(artifact, faultParam, &param);
        if (param.trainable && (!vectors || param.rank == 1) &&
            fsdprt_session_poke_shard(session.get(), faultRank, faultParam, nothing, nullptr,
                                      nullptr) == FSDPRT_OK)
          return;
      }
  badInput("%s: has no parameter that is trained", options.artifact.c_str());
}

void Trainer::saveShardElement() {
  auto save = [](void *to, void *element, size_t size) { std::memcpy(to, element, size); };
  call(fsdprt_session_poke_shard, session.get(), faultRank, faultParam,
       static_cast<void (*)(void *, void *, size_t)>(save), static_cast<void *>(savedElement));
}

void Trainer::restoreShardElement() {
  auto restore = [](void *from, void *element, size_t size) { std::memcpy(element, from, size); };
  call(fsdprt_session_poke_shard, session.get(), faultRank, faultParam,
       static_cast<void (*)(void *, void *, size_t)>(restore), static_cast<void *>(savedElement));
}
