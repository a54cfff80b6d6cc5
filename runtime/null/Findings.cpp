//===- Findings.cpp - Faults found by the null device -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "null/Findings.h"

using namespace fsdprt;

const char *fsdprt::nameOf(Fault fault) {
  switch (fault) {
  case Fault::race:
    return "race";
  case Fault::uninitialised:
    return "uninitialised";
  case Fault::lifetime:
    return "lifetime";
  case Fault::bounds:
    return "bounds";
  case Fault::alignment:
    return "alignment";
  case Fault::overlap:
    return "overlap";
  case Fault::wait:
    return "wait";
  case Fault::order:
    return "order";
  }
  return "";
}

void Findings::add(Fault fault, const std::string &key, const std::string &text) {
  auto [entry, isNew] = numbers.emplace(std::string(nameOf(fault)) + " " + key, found.size());
  if (isNew)
    found.push_back({fault, std::string(nameOf(fault)) + ": " + text});
  else
    ++found[entry->second].times;
}
