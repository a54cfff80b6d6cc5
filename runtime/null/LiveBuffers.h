//===- LiveBuffers.h - Which buffers live, and where -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The buffers of a layout, as a program is walked: those that live always, and those that begin and
// end at its commands.
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

  /// Of all programs of the layout: buffers that share bytes while both live, states and the like
  /// out of place.
  void check(Findings &findings, uint32_t layoutNumber) const;
  /// Whether the layout says anything of lifetimes.
  bool areKnown() const { return layout.buffers() && layout.buffers()->size() != 0; }

  /// From here on numbers are those of commands of this program.
  void enter(uint32_t program);
  /// Calls visit(begin, end) for each that begins at this command, before it, and for each that has
  /// ended, after it. What has begun before command `since` goes on: it is needed in the next
  /// iteration of the loop there.
  void begin(uint32_t command, const std::function<void(uint64_t, uint64_t)> &visit);
  void end(uint32_t command, uint32_t since, const std::function<void(uint64_t, uint64_t)> &visit);
  /// Calls visit(begin, end) for what does not live always.
  void visitShortLived(const std::function<void(uint64_t, uint64_t)> &visit) const;

  /// Whether one live buffer has all of it.
  bool contain(uint64_t begin, uint64_t end) const;
  /// "'h.0 parameter'", of what lives there now, or "no live buffer".
  std::string nameAt(uint64_t begin, uint64_t end) const;

private:
  struct Buffer {
    std::string name;
    uint64_t begin, end;
    uint32_t program, first, last; // as in the schema
    bool isAlways() const { return program == UINT32_MAX; }
  };
  static bool meet(const Buffer &a, const Buffer &b);
  std::string describe(const Buffer &buffer) const;
  void addResidents();

  const fb::Manifest &manifest;
  const fb::Layout &layout;
  std::vector<Buffer> buffers;
  uint32_t program = UINT32_MAX, now = 0;                       // the command at work
  std::map<uint32_t, std::vector<const Buffer *>> begins, ends; // by command
  std::map<uint64_t, const Buffer *> live;                      // by begin
  bool lives(const Buffer &buffer) const { return buffer.isAlways() || now <= buffer.last; }
};

} // namespace fsdprt

#endif // FSDPRT_NULL_LIVEBUFFERS_H
