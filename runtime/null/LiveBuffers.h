//===- LiveBuffers.h - Live buffers along a program --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tracks which buffers of a layout are live at each command of a program. A permanent buffer is
// always live. Every other buffer is live from one command of a program to another command of the
// same program.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_NULL_LIVEBUFFERS_H
#define FSDPRT_NULL_LIVEBUFFERS_H

#include "fsdprt/artifact_generated.h"
#include "null/Findings.h"
#include <functional>

namespace fsdprt {

class LiveBuffers {
public:
  LiveBuffers(const fb::Manifest &manifest, const fb::Layout &layout);

  /// Checks the buffers of all programs of the layout. Reports buffers outside the arenas,
  /// misaligned buffers, and pairs of buffers that share bytes while both are live.
  void check(Findings &findings, uint32_t layoutNumber) const;
  /// Returns true if the layout records buffers and their lifetimes.
  bool areKnown() const { return layout.buffers() && layout.buffers()->size() != 0; }

  /// Starts the walk through the commands of a program. In later calls, command numbers refer to
  /// this program.
  void enter(uint32_t program);
  /// begin() adds the buffers whose first command is `command` to the live buffers. end() removes
  /// the buffers whose last command is `command`. end() keeps buffers whose first command is before
  /// `since`, because the next iteration of the loop needs them. Both functions call visit(begin,
  /// end) for each buffer that they add or remove.
  void begin(uint32_t command, const std::function<void(uint64_t, uint64_t)> &visit);
  void end(uint32_t command, uint32_t since, const std::function<void(uint64_t, uint64_t)> &visit);
  /// Calls visit(begin, end) for every range that no permanent buffer covers.
  void visitShortLived(const std::function<void(uint64_t, uint64_t)> &visit) const;

  /// Returns true if a single live buffer covers [begin, end).
  bool contain(uint64_t begin, uint64_t end) const;
  /// Returns the name of a live buffer that shares bytes with the range, such as "'h.0 parameter'".
  /// Returns "no live buffer" if there is none.
  std::string nameAt(uint64_t begin, uint64_t end) const;

private:
  struct Buffer {
    std::string name;
    uint64_t begin, end;
    uint32_t program, first, last; // fields of fb::Buffer
    bool isAlways() const { return program == UINT32_MAX; }
  };
  static bool meet(const Buffer &a, const Buffer &b);
  std::string describe(const Buffer &buffer) const;
  void addResidents();

  const fb::Manifest &manifest;
  const fb::Layout &layout;
  std::vector<Buffer> buffers;
  uint32_t program = UINT32_MAX, now = 0;                       // current program and command
  std::map<uint32_t, std::vector<const Buffer *>> begins, ends; // by command number
  std::map<uint64_t, const Buffer *> live;                      // key: first byte of the buffer
  bool lives(const Buffer &buffer) const { return buffer.isAlways() || now <= buffer.last; }
};

} // namespace fsdprt

#endif // FSDPRT_NULL_LIVEBUFFERS_H
