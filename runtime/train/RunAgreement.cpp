//===- RunAgreement.cpp - Options that must be equal on all ranks -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/RunAgreement.h"
#include "core/Agreement.h"
#include "core/Error.h"

using namespace fsdprt;

std::string fsdprt::agreementOf(const TrainingOptions &options, double lr, uint64_t samples,
                                uint64_t stepsBefore, const std::vector<Content> &contents) {
  Agreement agreement;
  auto add = [&](const char *name, const std::string &value) { agreement.add(name, value); };
  auto number = [](auto value) { return std::to_string(value); };
  add("--backend", options.backend);
  add("--device", options.device);
  add("--gemm", options.gemm);
  add("--nccl-windows", options.ncclWindows);
  add("--nccl-cta-policy", options.ncclCtaPolicy);
  add("--nccl-max-ctas", options.ncclMaxCtas ? number(options.ncclMaxCtas) : "");
  add("--steps", number(options.steps));
  add("the number of tokens", number(samples));
  std::string inputs, synthetic;
  for (const TrainingOptions::InputSource &input : options.inputs)
    inputs += (inputs.empty() ? "" : ",") + input.name;
  for (const std::string &name : options.synthetic)
    synthetic += (synthetic.empty() ? "" : ",") + name;
  add("--input", inputs);
  add("--synthetic", synthetic);
  add("the step to resume from", number(stepsBefore));
  add("--lr", format("%.17g", lr));
  add("--min-lr", options.minimumLr ? format("%.17g", *options.minimumLr) : "");
  add("--warmup", number(options.warmupSteps));
  add("--lr-decay-steps", number(options.decaySteps));
  add("--seed", options.seed ? number(*options.seed) : "");
  add("--overfit", number(options.overfit));
  add("--random-extra-ids", format("%.17g", options.extraIds));
  add("--on-nonfinite", options.nonfiniteSteps ? number(*options.nonfiniteSteps) : "");
  add("--val-every", number(options.validateEvery));
  add("--val-batches", options.validationBatches ? number(*options.validationBatches) : "");
  add("--val-fraction", format("%.17g", options.validationFraction));
  add("--save", options.save);
  add("--save-every", number(options.saveEvery));
  add("--wait-for-saves", options.waitForSaves ? "given" : "");
  add("--init", options.init.empty() ? "" : "given");
  add("--export", options.exportTo.empty() ? "" : "given");
  add("--trace", options.trace.empty() ? "" : "given");
  add("--trace-steps", options.trace.empty() ? "" : number(options.traceSteps));
  add("--check-against", options.check ? "unsharded" : "");
  add("--only-kinds", options.onlyKinds);
  add("--mpi-reduce", options.mpiReduce);
  for (const Content &content : contents)
    agreement.add("the content of " + content.name, content.comparison, content.path);
  return agreement.text();
}
