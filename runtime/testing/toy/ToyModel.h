//===- ToyModel.h - A small handwritten artifact ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The model has one unit, which has at least 128 elements and contains two parameters: w of shape
// 13x7 (with weight decay) and b of shape 11. Training moves each element towards a number, which
// is computed from the tokens of the rank. The artifact has all programs, collectives with start
// and wait, loops, kernels with two phases, and shared scratch, so that tests do not need the
// compiler. Tests may change the manifest before they pack it.
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
  bool asynchronous = true; // collectives have a start and a wait
  uint32_t workers = 4;
  bool snapshot = false; // adds the program 'snapshot' and its memory, for asynchronous saves
  bool values = false;   // adds values of w (f64) and b (bf16), the id -100, and seed 7
};

fb::ManifestT toyManifest(const ToyOptions &options);

/// Turns the kernels into GPU kernels that the verifier accepts.
void makeGpu(fb::ManifestT &manifest);

/// The initial values that follow the manifest in the file if ToyOptions::values is true.
constexpr double toyValue = 0.1;
std::vector<std::byte> toyValues();

/// Returns the bytes of a file that consists of header, manifest, image, values and hash.
std::vector<std::byte> pack(const fb::ManifestT &manifest, const std::vector<std::byte> &image,
                            const std::vector<std::byte> &values = {});
/// Returns the toy's image with launch records for the kernels of the manifest.
std::vector<std::byte> imageFor(const fb::ManifestT &manifest);
/// Packs the manifest with its image. If a parameter has initial values, also packs the values.
std::vector<std::byte> pack(const fb::ManifestT &manifest);
void seal(std::vector<std::byte> &file);

inline fb::Slice at(const fb::Slice &slice, uint64_t offset) {
  return fb::Slice(offset, slice.bytes(), slice.stride(), slice.piece(), slice.split());
}

const std::vector<std::byte> &toyImage();
std::vector<std::byte> readFile(const std::string &path);
void writeFile(const std::string &path, const void *data, size_t size);

} // namespace fsdprt::test

#endif // FSDPRT_TESTING_TOY_TOYMODEL_H
