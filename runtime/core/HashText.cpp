//===- HashText.cpp - SHA-256 as text --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/HashText.h"
#include "fsdprt/sha256.h"

using namespace fsdprt;

std::string fsdprt::hexText(const uint8_t (&digest)[32]) {
  std::string text;
  for (uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string fsdprt::sha256Text(const void *data, size_t size) {
  fsdprt_sha256 hash;
  uint8_t digest[32];
  fsdprt_sha256_begin(&hash);
  fsdprt_sha256_update(&hash, data, size);
  fsdprt_sha256_end(&hash, digest);
  return hexText(digest);
}
