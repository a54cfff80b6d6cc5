//===- Accesses.h - The ranges that a command accesses ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Derives the accesses of a command from the artifact. A kernel accesses its bindings (`reads` and
// `writes`) and its scratch memory. A collective or copy accesses its source and its target. The
// ranges are computed for one rank and one iteration of a loop.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_ACCESSES_H
#define FSDPRT_NULL_ACCESSES_H

#include "artifact/Arenas.h"
#include "artifact/Mesh.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdprt {

struct Access {
  enum class Role : uint8_t { binding, source, target, scratch, state, host };
  explicit Access(Role role, uint32_t index = 0) : role(role), index(index) {}

  Role role;
  uint32_t index; // index of the binding; 0 for other roles
  bool reads = false, writes = false;
  bool needsValue = false;     // true if all bytes must have been written earlier
  bool leavesValue = true;     // false if the written bytes are undefined afterwards
  bool inArena = true;         // if false, `begin` and `end` are invalid
  uint64_t alignment = 1;      // in bytes
  uint64_t begin = 0, end = 0; // layout offsets in bytes
  std::string asked;           // text that describes the range if the range is outside the arena
};

class Accesses {
public:
  Accesses(const fb::Manifest &manifest, const fb::Layout &layout, const Mesh &mesh, uint64_t rank)
      : manifest(manifest), layout(layout), mesh(mesh), rank(rank) {}

  /// Sets `into` to the accesses of `command` in `iteration`. Waits and loops have no accesses.
  void of(const fb::Command &command, uint64_t iteration, std::vector<Access> &into) const;
  /// Finds two accesses of a command that share bytes, where the first access is a write. Returns
  /// the indices of these accesses in `accesses`, or nothing if there are none. Two kinds of
  /// overlap are allowed: the source of a transfer may be equal to its target, and the source of a
  /// gather may be the rank's own piece of the target.
  std::optional<std::pair<size_t, size_t>> findClash(const fb::Command &command,
                                                     const std::vector<Access> &accesses) const;
  enum class Memory { device, host, file };
  Memory memoryOf(const Access &access) const;
  /// Returns the name of an access for messages: "binding 2", "the source".
  static std::string nameOf(const Access &access);

private:
  void place(const fb::Slice &slice, uint64_t iteration, uint64_t alignment, Access access,
             std::vector<Access> &into) const;
  bool isInPlace(const fb::Command &command, const Access &source, const Access &target) const;
  void ofLaunch(const fb::Launch &launch, uint64_t iteration, std::vector<Access> &into) const;
  void ofInitialise(const fb::Initialise &initialise, std::vector<Access> &into) const;

  const fb::Manifest &manifest;
  const fb::Layout &layout;
  const Mesh &mesh;
  uint64_t rank;
};

/// Returns a description of the command for messages: "launch 'adamw h.0'", "all_gather 'h.0',
/// collective 4 on channel 1".
std::string describe(const fb::Manifest &manifest, const fb::Command &command);

} // namespace fsdprt

#endif // FSDPRT_NULL_ACCESSES_H
