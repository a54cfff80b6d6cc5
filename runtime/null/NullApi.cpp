//===- NullApi.cpp - C interface of the null device -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "abi/Guard.h"
#include "abi/Structs.h"
#include "null/NullDevice.h"

using namespace fsdprt;

fsdprt_status fsdprt_artifact_walk(const char *path, const fsdprt_walk_options *given,
                                   fsdprt_walk *result,
                                   void (*finding)(void *user, const char *text, uint64_t times),
                                   void *user, fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_walk_options taken = takeStruct(given);
    NullOptions options;
    if (taken.steps)
      options.steps = taken.steps;
    std::shared_ptr<const Artifact> artifact = Artifact::open(path, Rules::form);
    for (uint64_t i = 0; i < taken.peers; ++i)
      options.peers[taken.peer_ranks[i]] = Artifact::open(taken.peer_files[i], Rules::form);
    NullResult walked = walkPrograms(*artifact, options);
    fsdprt_walk filled = {};
    filled.ranks = walked.ranks;
    filled.kinds = walked.kinds;
    filled.walked_kinds = walked.walked;
    filled.commands = walked.counts.commands;
    filled.events = walked.counts.events;
    filled.bytes = walked.counts.bytes;
    filled.collectives = walked.order.collectives;
    filled.communicators = walked.order.communicators;
    filled.findings = walked.findings.size();
    giveStruct(filled, result);
    for (const Finding &one : walked.findings)
      if (finding)
        finding(user, one.text.c_str(), one.times);
  });
}
