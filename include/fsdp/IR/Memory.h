//===- Memory.h - Where a buffer lies ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.buffer @a "a" gathered 512                           the device's arena
//   fsdp.buffer @b "b" gradients 256 host                     the host's
//   fsdp.buffer @c "c" optimizer 256 at 4096 {fsdp.file}      the rank's file, which only copies,
//                                                             fills and initial values touch
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_MEMORY_H
#define FSDP_IR_MEMORY_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Marks a buffer of the file; how long that is, on a packed layout. On a kernel call, and on the
/// buffers of its results: they may wait on the host (fsdp-rematerialise chooses).
inline constexpr StringLiteral offloadAttr = "fsdp.offload";
inline constexpr StringLiteral fileAttr = "fsdp.file", fileBytesAttr = "fsdp.file_bytes";

enum class Memory { device, host, file };

inline Memory getMemory(BufferOp buffer) {
  return buffer->hasAttr(fileAttr) ? Memory::file
         : buffer.getHost()        ? Memory::host
                                   : Memory::device;
}
inline StringRef getName(Memory memory) {
  return memory == Memory::device ? "device" : memory == Memory::host ? "host" : "file";
}
inline int64_t getFileBytes(LayoutOp layout) {
  auto bytes = layout->getAttrOfType<IntegerAttr>(fileBytesAttr);
  return bytes ? bytes.getInt() : 0;
}

} // namespace mlir::fsdp

#endif // FSDP_IR_MEMORY_H
