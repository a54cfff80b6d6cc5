//===- Memory.h - Memory spaces of buffers ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.buffer @a "a" gathered 512                           arena of the device
//   fsdp.buffer @b "b" gradients 256 host                     arena of the host
//   fsdp.buffer @c "c" optimizer 256 at 4096 {fsdp.file}      file of the rank; accessed only by
//                                                             copy, fill and initialise commands
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_IR_MEMORY_H
#define FSDP_IR_MEMORY_H

#include "fsdp/IR/FSDP.h"

namespace mlir::fsdp {

/// Attribute that fsdp-rematerialise sets on a kernel call if the results of the call may be kept
/// in host memory between two uses. The buffers of these results have the same attribute.
inline constexpr StringLiteral offloadAttr = "fsdp.offload";
/// `fileAttr` marks a buffer that is in the file of a rank. `fileBytesAttr` is an attribute of a
/// packed layout. The attribute contains the size of the rank's file in bytes.
inline constexpr StringLiteral fileAttr = "fsdp.file", fileBytesAttr = "fsdp.file_bytes";

/// Alignment in bytes of buffers, and of the slices to which a launch binds arguments.
inline constexpr int64_t arenaAlignment = 64;

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
