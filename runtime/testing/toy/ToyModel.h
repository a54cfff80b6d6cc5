//===- ToyModel.h - A small artifact made by hand ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One unit of two parameters (w 13x7 with decay, b 11) in 128 elements or a few more; the loss
// pulls every element towards numbers made from the rank's tokens. It has all programs, start and
// wait forms, loops, two phases and shared scratch, so that the runtime can be tested without the
// compiler. The manifest stays open for tests that break it.
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

/// A manifest that passes every check.
fb::ManifestT toyManifest(const ToyOptions &options);

/// Makes its kernels those of a GPU, as far as a verifier sees.
void makeGpu(fb::ManifestT &manifest);

/// The values after the manifest of ToyOptions::values.
constexpr double toyValue = 0.1;
std::vector<std::byte> toyValues();

/// The bytes of a file: header, manifest, image, values, hash.
std::vector<std::byte> pack(const fb::ManifestT &manifest, const std::vector<std::byte> &image,
                            const std::vector<std::byte> &values = {});
/// With the toy's image, and its values when a parameter has any.
std::vector<std::byte> pack(const fb::ManifestT &manifest);
/// Computes the hash again after a change.
void seal(std::vector<std::byte> &file);

/// The slice, from another offset on.
inline fb::Slice at(const fb::Slice &slice, uint64_t offset) {
  return fb::Slice(offset, slice.bytes(), slice.stride(), slice.piece(), slice.split());
}

/// The compiled ToyKernels.c.
const std::vector<std::byte> &toyImage();
std::vector<std::byte> readFile(const std::string &path);
void writeFile(const std::string &path, const void *data, size_t size);

} // namespace fsdprt::test

#endif // FSDPRT_TESTING_TOY_TOYMODEL_H
