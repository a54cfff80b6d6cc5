//===- Checkpointing.h - What the backward computes again -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PLAN_CHECKPOINTING_H
#define FSDP_PLAN_CHECKPOINTING_H

#include "llvm/ADT/StringMap.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::fsdp {

/// A policy of activation checkpointing: none, full, auto, or selective=KIND+KIND/N, where KIND is
/// that of a kernel.
struct CheckpointingPolicy {
  enum class Mode { None, Full, Selective, Auto };

  Mode mode = Mode::None;
  /// Of each so many calls of a kind in a unit the first one's results are kept; of kinds that are
  /// not here none are.
  llvm::StringMap<int64_t> kept;

  /// What `text` says, or, with `problem`, what it should have been.
  static std::optional<CheckpointingPolicy> parse(llvm::StringRef text, std::string &problem);
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_CHECKPOINTING_H
