//===- TileData.h - Permission to use AMX -----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_TILEDATA_H
#define FSDPCOMMON_TILEDATA_H

namespace fsdpcommon {

/// Requests from Linux the permission to use AMX's tile registers in all threads of this process.
/// Returns true if the process has this permission. Linux never withdraws it. Without the
/// permission the first AMX instruction raises SIGILL.
bool requestTileData();

} // namespace fsdpcommon

#endif // FSDPCOMMON_TILEDATA_H
