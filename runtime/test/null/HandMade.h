//===- HandMade.h - Handwritten programs for the null device ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares a model that has one unit with one parameter. Tests add buffers and commands to the
// model. In the arena, the following ranges precede the buffers (with their sizes in bytes):
//
//     p 256 | ids 64 | block 64 | rank 64 | 64 free | buffers
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_NULL_HANDMADE_H
#define FSDPRT_TEST_NULL_HANDMADE_H

#include "null/NullDevice.h"
#include "testing/toy/ToyModel.h"

namespace fsdprt::test {

struct HandMade {
  using Block = std::vector<std::unique_ptr<fb::CommandT>>;
  static constexpr uint64_t shardBytes = 256, firstFree = 512;

  explicit HandMade(uint64_t shards = 2, uint64_t replicas = 1);

  fb::LayoutT &layout() { return *manifest.layouts[0]; }
  Block &init() { return manifest.programs[0]->commands; }
  Block &step() { return manifest.programs[1]->commands; }
  fb::Slice parameter() const { return {0, shardBytes, 0, 0, 0}; }
  fb::Slice ids() const { return {256, 64, 0, 0, 0}; }

  /// Adds a buffer after all other buffers. The buffer is live from command `first` to command
  /// `last` of the step.
  fb::Slice buffer(const char *name, uint64_t bytes, uint32_t first, uint32_t last);

  /// Appends a launch to `to` and returns the number of the launch. The next functions append other
  /// commands.
  uint32_t launch(Block &to, const char *label, std::vector<fb::Slice> reads,
                  std::vector<fb::Slice> writes, std::vector<fb::Slice> updates = {});
  void gather(Block &to, uint32_t id, fb::Slice source, fb::Slice target, uint32_t channel = 1);
  void collective(Block &to, fb::CollectiveKind kind, uint32_t id, fb::Slice source,
                  fb::Slice target, uint64_t count, uint32_t channel,
                  std::vector<uint32_t> axes = {1});
  void copy(Block &to, uint32_t id, fb::Slice source, fb::Slice target, uint32_t channel = 0);
  void wait(Block &to, uint32_t id);
  void fill(Block &to, fb::Slice target);

  std::shared_ptr<const Artifact> artifact() const;
  NullResult walk(const NullOptions &options = NullOptions()) const {
    return walkPrograms(*artifact(), options);
  }
  std::string findings() const;

  fb::ManifestT manifest;

private:
  uint64_t end = firstFree;
};

/// Returns a valid step of two ranks: gather, forward, reduction and update. A wait follows each
/// collective. If `channel` is 0, collectives are synchronous, and empty fills replace waits.
HandMade soundStep(uint32_t channel = 1);

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace fsdprt::test

/// Expects that the text of the findings contains `part`, and otherwise prints this text.
#define EXPECT_FOUND(hand, part)                                                                   \
  {                                                                                                \
    std::string text = (hand).findings();                                                          \
    EXPECT_TRUE(contains(text, part)) << text;                                                     \
  }

#endif // FSDPRT_TEST_NULL_HANDMADE_H
