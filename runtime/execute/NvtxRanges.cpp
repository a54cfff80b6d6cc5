//===- NvtxRanges.cpp - Ranges of a rank for profiling tools ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The phase `backward` begins at a launch labelled "gradient of X". After `backward`, the phase
// `update` begins when a loop ends, or at a launch outside of loops that is labelled "gradient
// shard" or "X parameter". A launch with one of these two labels does not begin `update` inside the
// loop over micro-batches, because it only adds to shards of gradients there. The body of a loop
// begins in the phase `forward`.
//
//===----------------------------------------------------------------------===//

#include "execute/NvtxRanges.h"
#include "collectives/Watchdog.h"
#include <cstring>
#include <unordered_map>

using namespace fsdprt;

static std::string nameOf(const fb::Manifest &manifest, const Instruction &instruction,
                          std::unordered_map<uint32_t, std::string> &started) {
  std::string label = instruction.label;
  switch (instruction.kind) {
  case fb::Body::Launch: {
    const auto *name = manifest.kernels()
                           ->Get(static_cast<const fb::Launch *>(instruction.body)->kernel())
                           ->name();
    return !label.empty() || !name ? label : name->str();
  }
  case fb::Body::Collective: {
    const auto &collective = *static_cast<const fb::Collective *>(instruction.body);
    return started[collective.id()] = fb::EnumNameCollectiveKind(collective.kind()) +
                                      (label.empty() ? label : " " + label);
  }
  case fb::Body::Copy: {
    const auto &copy = *static_cast<const fb::Copy *>(instruction.body);
    std::string name = "copy" + (label.empty() ? label : " " + label);
    if (copy.channel() != 0)
      started[copy.id()] = name;
    return name;
  }
  case fb::Body::Wait:
    return "wait " + started[static_cast<const fb::Wait *>(instruction.body)->id()];
  case fb::Body::Fill:
    return "fill" + (label.empty() ? label : " " + label);
  default:
    return label.empty() ? fb::EnumNameBody(instruction.kind) : label;
  }
}

NvtxRangeNames::NvtxRangeNames(const fb::Manifest &manifest,
                               const std::vector<Instruction> &instructions)
    : instructions(instructions) {
  std::unordered_map<uint32_t, std::string> started;
  for (const Instruction &instruction : instructions)
    names.push_back(::nameOf(manifest, instruction, started));
  findPhases();
}

/// Returns the phase of `instruction`. `current` is the phase of the preceding command.
static NvtxRangeNames::Phase phaseOf(const Instruction &instruction, NvtxRangeNames::Phase current,
                                     bool isInLoop) {
  auto says = [&](const char *words) {
    return instruction.kind == fb::Body::Launch && std::strstr(instruction.label, words);
  };
  if (!isInLoop && current != NvtxRangeNames::forward &&
      (says("gradient shard") || says(" parameter")))
    return NvtxRangeNames::update;
  return says("gradient of") ? NvtxRangeNames::backward : current;
}

void NvtxRangeNames::findPhases() {
  Phase current = forward;
  size_t loopEnd = 0;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &instruction = instructions[i];
    if (instruction.kind == fb::Body::Loop) {
      current = forward;
      loopEnd = i + 1 + instruction.length;
    }
    if (i == loopEnd && current == backward)
      current = update;
    current = ::phaseOf(instruction, current, i < loopEnd);
    phased |= current != forward;
    phases.push_back(current);
  }
}

NvtxRun::NvtxRun(const Nvtx *nvtx, const NvtxRangeNames *names, const char *program, uint64_t run)
    : nvtx(nvtx), names(names) {
  if (nvtx)
    nvtx->push(runText(program, run).c_str());
}

NvtxRun::~NvtxRun() {
  for (int depth = phase < 0 ? 1 : 2; nvtx && depth > 0; --depth)
    nvtx->pop();
}

void NvtxRun::begin(const Instruction &instruction) {
  static const char *const phases[] = {"forward", "backward", "update"};
  if (int next = names->phaseOf(instruction); names->hasPhases() && next != phase) {
    if (phase >= 0)
      nvtx->pop();
    nvtx->push(phases[next]);
    phase = next;
  }
  nvtx->push(names->nameOf(instruction));
}

void NvtxObserver::prepare(const std::vector<Instruction> &program) {
  std::unique_ptr<NvtxRangeNames> &of = names[program.data()];
  if (!of)
    of = std::make_unique<NvtxRangeNames>(manifest, program);
}

void NvtxObserver::beginRun(const RankRun &run) {
  runs[run.rank - firstRank].emplace(&nvtx, names.at(run.begin).get(), run.program, run.number);
}

void NvtxObserver::beforeCommand(const RankRun &run, const Instruction &instruction) {
  runs[run.rank - firstRank]->begin(instruction);
}

void NvtxObserver::afterCommand(const RankRun &run, const Instruction &) {
  runs[run.rank - firstRank]->end();
}

void NvtxObserver::endCommands(const RankRun &run) noexcept { runs[run.rank - firstRank].reset(); }
