//===- UnshardedCheck.cpp - Comparison with an unsharded run ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/UnshardedCheck.h"
#include "core/NumberText.h"
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

/// Returns why the compiler has left out the program `reference` (lib/Update/AddReference.cpp).
static std::string findReason(const fsdprt_artifact_info &info) {
  uint64_t together = info.ranks / info.data_ranks;
  if (together == 1)
    return "";
  if (together > 8)
    return format("; expected at most 8 ranks of the axes 'tensor' and 'context' to compute a "
                  "sample together, found %llu",
                  ull(together));
  return format("; for %llu ranks that compute a sample together, it would have more than 50000 "
                "operations; compile with fewer layers",
                ull(together));
}

UnshardedCheck::UnshardedCheck(const TrainingRun &run) : run(run) {
  for (const char *program : {"reference_init", "reference"})
    if (!fsdprt_artifact_has_program(run.artifact, program))
      badInput("%s: has no program '%s' to check against%s", run.options.artifact.c_str(), program,
               findReason(run.info).c_str());
}

void UnshardedCheck::expectInputs(const std::vector<fsdprt_input_info> &inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    fsdprt_input_info whole = {};
    whole.struct_size = sizeof whole;
    if (fsdprt_artifact_get_input(run.artifact, "reference", i, &whole) != FSDPRT_OK ||
        std::strcmp(whole.name, inputs[i].name) != 0 ||
        whole.micro_batches != uint64_t(inputs[i].micro_batches) * run.info.data_ranks ||
        whole.bytes != inputs[i].bytes * run.info.data_ranks)
      badInput(
          "%s: input '%s': the reference does not take one micro-batch for each of all samples",
          run.options.artifact.c_str(), inputs[i].name);
  }
}

void UnshardedCheck::initialise() const {
  if (run.isRoot)
    call(fsdprt_session_run, run.session.get(), "reference_init");
}

static bool sameBits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool UnshardedCheck::step(uint64_t number, const float *block) const {
  if (!run.isRoot)
    return true;
  run.setRate(FSDPRT_REFERENCE, block[FSDPRT_BLOCK_LR]);
  call(fsdprt_session_run, run.session.get(), "reference");
  float whole[FSDPRT_BLOCK_SIZE];
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(run.session.get()),
       FSDPRT_REFERENCE, static_cast<float *>(whole));
  bool equal = true;
  for (auto [index, name] :
       {std::pair(FSDPRT_BLOCK_LOSS, "loss"), std::pair(FSDPRT_BLOCK_GRAD_NORM, "gradient norm")}) {
    if (sameBits(block[index], whole[index]))
      continue;
    run.reporter.line(
        "check against unsharded failed: step %llu: %s is %.9g sharded and %.9g unsharded",
        (ull)number, name, static_cast<double>(block[index]), static_cast<double>(whole[index]));
    equal = false;
  }
  return equal;
}

static const char *roleName(fsdprt_state_role role) {
  static const char *const names[] = {"", "first moment of ", "second moment of ", "momentum of ",
                                      "master of "};
  return names[role];
}

bool UnshardedCheck::compare() const {
  fsdprt_comparison result = {};
  result.struct_size = sizeof result;
  call(fsdprt_session_compare, static_cast<const fsdprt_session *>(run.session.get()), &result);
  char a[32], b[32];
  if (!run.isRoot)
    return true;
  if (result.equal) {
    run.reporter.line("check against unsharded passed: %llu step%s on %u rank%s: losses, gradient "
                      "norms, %s parameter values and %s optimizer values, bit for bit",
                      (ull)run.stepsDone, run.stepsDone == 1 ? "" : "s", run.ranks,
                      run.ranks == 1 ? "" : "s", grouped(result.parameter_elements, a),
                      grouped(result.optimizer_elements, b));
    return true;
  }
  fsdprt_param_info param = {};
  param.struct_size = sizeof param;
  fsdprt_artifact_get_param(run.artifact, result.param, &param);
  run.reporter.line(
      "check against unsharded failed: after step %llu: %s'%s' element %llu (rank %u) is "
      "%.17g sharded and %.17g unsharded",
      (ull)run.stepsDone, roleName(result.role), param.name, (ull)result.element, result.rank,
      result.sharded, result.unsharded);
  return false;
}
