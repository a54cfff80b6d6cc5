//===- Checkpointing.h - Policy of activation checkpointing -----*- C++ -*-===//
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
/// the kind of a kernel.
struct CheckpointingPolicy {
  enum class Mode { None, Full, Selective, Auto };

  Mode mode = Mode::None;
  /// Kinds of kernels whose results are kept. The value N means that in each unit the results of
  /// the first of every N calls of that kind are kept.
  llvm::StringMap<int64_t> kept;

  /// Returns the policy that `text` names. On an error, returns nothing and sets `problem`.
  static std::optional<CheckpointingPolicy> parse(llvm::StringRef text, std::string &problem);
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_CHECKPOINTING_H
