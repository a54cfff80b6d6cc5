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
/// a kind of kernel, such as `contract`.
struct CheckpointingPolicy {
  enum class Mode { None, Full, Selective, Auto };

  Mode mode = Mode::None;
  /// Kinds of kernels whose results are kept for the backward. A kind maps to N: of every N calls
  /// of that kind in a unit, the results of the first call are kept.
  llvm::StringMap<int64_t> kept;

  /// Parses `text` as a policy. If `text` is invalid, returns nothing and sets `problem`.
  static std::optional<CheckpointingPolicy> parse(llvm::StringRef text, std::string &problem);
};

} // namespace mlir::fsdp

#endif // FSDP_PLAN_CHECKPOINTING_H
