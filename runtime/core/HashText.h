//===- HashText.h - SHA-256 as text ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_HASHTEXT_H
#define FSDPRT_CORE_HASHTEXT_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdprt {

/// Returns the SHA-256 of `size` bytes as 64 hexadecimal digits.
std::string sha256Text(const void *data, size_t size);
std::string hexText(const uint8_t (&digest)[32]);

} // namespace fsdprt

#endif // FSDPRT_CORE_HASHTEXT_H
