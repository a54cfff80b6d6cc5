//===- Checkpointing.cpp - Policy of activation checkpointing ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses checkpointing policies: none, full, auto and selective=KIND/N+KIND.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Plan/Checkpointing.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Names of the kinds of kernels, which the pass fsdp-outline-kernels sets.
static constexpr StringRef kinds[] = {"contract", "attention", "row", "map",
                                      "column",   "scatter",   "copy"};

std::optional<CheckpointingPolicy> CheckpointingPolicy::parse(StringRef text,
                                                              std::string &problem) {
  CheckpointingPolicy policy;
  if (text == "none" || text == "full" || text == "auto") {
    policy.mode = text == "none" ? Mode::None : text == "full" ? Mode::Full : Mode::Auto;
    return policy;
  }
  auto refuse = [&](const Twine &expected) {
    problem = ("expected " + expected).str();
    return std::nullopt;
  };
  if (!text.consume_front("selective=") || text.empty())
    return refuse("none, full, auto, or selective=KINDS such as selective=contract/2+attention");
  policy.mode = Mode::Selective;
  for (StringRef part : llvm::split(text, '+')) {
    StringRef kind = part.take_until([](char c) { return c == '/'; });
    if (!llvm::is_contained(kinds, kind))
      return refuse("kinds of kernels (" + llvm::join(ArrayRef(kinds), ", ") + "), found '" + kind +
                    "'");
    int64_t every = 1;
    if (kind != part && (part.drop_front(kind.size() + 1).getAsInteger(10, every) || every < 1))
      return refuse("a number of at least 1 after '" + kind +
                    "/', to keep the first of each so many, found '" +
                    part.drop_front(kind.size() + 1) + "'");
    if (!policy.kept.try_emplace(kind, every).second)
      return refuse("each kind of kernels once, found '" + kind + "' twice");
  }
  return policy;
}
