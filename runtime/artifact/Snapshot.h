//===- Snapshot.h - The copy of the state for saves -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The program 'snapshot' of an artifact compiled with --async-save copies each state to a range of
// the host arena that no other program uses:
//
//   host arena   | other buffers | state 0 | state 1 | ... | other buffers |
//                                begin                     end
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_SNAPSHOT_H
#define FSDPRT_ARTIFACT_SNAPSHOT_H

#include "artifact/Verifier.h"
#include "fsdprt/artifact_generated.h"
#include <string>

namespace fsdprt {

inline constexpr const char snapshotProgram[] = "snapshot";

/// The range [begin, end) of the layout `layout` that contains the copies of all states. Both
/// offsets are 0 if no program 'snapshot' exists.
struct SnapshotRange {
  uint32_t layout = 0;
  uint64_t begin = 0, end = 0;
};

/// Checks that the program 'snapshot' satisfies (V24), and returns the range to which this program
/// writes. The names and layouts of programs must have been verified before.
SnapshotRange verifySnapshot(const std::string &file, const fb::Manifest &manifest, Rules rules,
                             WorkLimit &work);

/// Returns the total size in bytes of the copies of all states, or 0 if no program 'snapshot'
/// exists. `manifest` must be verified.
uint64_t snapshotBytes(const fb::Manifest &manifest);

/// Returns the offset of the copy of state `index`, which must exist. `program` is the program
/// 'snapshot' of a verified artifact.
inline uint64_t snapshotOffset(const fb::Program &program, uint32_t index) {
  return program.commands()->Get(index)->body_as_Copy()->target()->offset();
}

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_SNAPSHOT_H
