//===- RankFault.cpp - A planted fault of one rank --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The faulty process sends a signal to itself. The signal kills or stops the process, so that it
// ends or stops at exactly this place.
//
//===----------------------------------------------------------------------===//

#include "testing/faults/RankFault.h"
#include "core/Error.h"
#include <algorithm>
#include <charconv>
#include <csignal>
#include <iterator>
#include <sstream>
#include <unistd.h>

using namespace fsdprt;

template <typename Number>
static bool parseNumber(const std::string &text, Number &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

RankFault RankFault::parse(const std::string &text) {
  static const char *const kinds[] = {"none", "kill", "stop", "exit", "hang", "nan", "slow"};
  static const char *const phases[] = {"start", "gather", "compute", "reduce", "save"};
  std::istringstream stream(text);
  std::string kind, rank, phase, step;
  for (std::string *part : {&kind, &rank, &phase, &step})
    std::getline(stream, *part, ':');
  RankFault fault;
  auto foundKind = std::find(std::begin(kinds), std::end(kinds), kind);
  auto foundPhase = std::find(std::begin(phases), std::end(phases), phase);
  if (foundKind == std::end(kinds) || foundPhase == std::end(phases) ||
      !parseNumber(rank, fault.rank) || !parseNumber(step, fault.step))
    badInput("expected a fault KIND:RANK:PHASE:STEP such as kill:1:gather:3, found '%s'",
             printable(text).c_str());
  fault.kind = static_cast<Kind>(foundKind - std::begin(kinds));
  fault.phase = static_cast<Phase>(foundPhase - std::begin(phases));
  return fault;
}

void RankFault::inject() const {
  switch (kind) {
  case Kind::none:
  case Kind::nan:
    return;
  case Kind::kill:
    ::kill(getpid(), SIGKILL);
    break;
  case Kind::stop:
    ::kill(getpid(), SIGSTOP);
    break;
  case Kind::exit:
    _exit(0);
  case Kind::slow:
    sleep(4);
    // Every launch and every collective of the step calls inject(), so that the delay is repeated.
    break;
  case Kind::hang:
    for (;;)
      pause();
  }
}
