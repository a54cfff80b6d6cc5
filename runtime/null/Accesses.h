//===- Accesses.h - What a command touches ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As the artifact states it: a kernel's bindings with what it reads and writes, its scratch, the
// two sides of collectives and copies. Ranges are those of one rank in one iteration.
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
  uint32_t index; // of a binding
  bool reads = false, writes = false;
  bool needsValue = false; // all of it has to be written before
  bool leavesValue = true; // what it writes may be read later
  bool inArena = true;     // else its range means nothing
  uint64_t alignment = 1;
  uint64_t begin = 0, end = 0;
  std::string asked; // where it is not in the arena: what was asked for
};

class Accesses {
public:
  Accesses(const fb::Manifest &manifest, const fb::Layout &layout, const Mesh &mesh, uint64_t rank)
      : manifest(manifest), layout(layout), mesh(mesh), rank(rank) {}

  /// Replaces `into`. Waits and loops touch nothing.
  void of(const fb::Command &command, uint64_t iteration, std::vector<Access> &into) const;
  /// Which two accesses of the command share bytes and may not: the first one writes. What is sent
  /// may be in the place that it is received in: all of it, or in a gather the rank's own piece.
  std::optional<std::pair<size_t, size_t>> findClash(const fb::Command &command,
                                                     const std::vector<Access> &accesses) const;
  enum class Memory { device, host, file };
  Memory memoryOf(const Access &access) const;
  /// "binding 2", "the source".
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

/// "launch 'adamw h.0'", "all_gather 'h.0', collective 4 on channel 1".
std::string describe(const fb::Manifest &manifest, const fb::Command &command);

} // namespace fsdprt

#endif // FSDPRT_NULL_ACCESSES_H
