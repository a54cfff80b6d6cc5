//===- ToyModel.h - A small handwritten artifact ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One unit of two parameters (w 13x7 with decay, b 11) in at least 128 elements. The loss pulls
// each element towards numbers made from the rank's tokens. The artifact has all programs, start
// and wait forms, loops, two phases and shared scratch, so that the runtime can be tested without
// the compiler. Tests may change the manifest before they pack it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_TOY_TOYMODEL_H
#define FSDPRT_TESTING_TOY_TOYMODEL_H

#include "fsdprt/artifact_generated.h"
#include <cstddef>
#include <string>
#include <vector>

namespace fsdprt::test {

struct ToyOptions {
  uint64_t replicas = 1, shards = 2;
  bool asynchronous = true; // start and wait forms
  uint32_t workers = 4;
  bool values = false; // 'w' starts from one f64, 'b' from values in bf16, extra id -100, seed 7
};

/// Returns a manifest that passes every check.
fb::ManifestT toyManifest(const ToyOptions &options);

/// Turns its kernels into GPU kernels, as far as the verifier is concerned.
void makeGpu(fb::ManifestT &manifest);

/// The values that follow the manifest with ToyOptions::values.
constexpr double toyValue = 0.1;
std::vector<std::byte> toyValues();

/// Returns the bytes of a file: header, manifest, image, values, hash.
std::vector<std::byte> pack(const fb::ManifestT &manifest, const std::vector<std::byte> &image,
                            const std::vector<std::byte> &values = {});
/// Packs the toy's image, and its values if a parameter has any.
std::vector<std::byte> pack(const fb::ManifestT &manifest);
/// Updates the hash after a change.
void seal(std::vector<std::byte> &file);

/// Returns the slice, moved to another offset.
inline fb::Slice at(const fb::Slice &slice, uint64_t offset) {
  return fb::Slice(offset, slice.bytes(), slice.stride(), slice.piece(), slice.split());
}

/// Returns the compiled ToyKernels.c.
const std::vector<std::byte> &toyImage();
std::vector<std::byte> readFile(const std::string &path);
void writeFile(const std::string &path, const void *data, size_t size);

} // namespace fsdprt::test

#endif // FSDPRT_TESTING_TOY_TOYMODEL_H
