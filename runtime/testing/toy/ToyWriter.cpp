//===- ToyWriter.cpp - Writes the toy model to a file -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// "fsdprt-toy FILE REPLICAS SHARDS" writes the toy model to a file, for tests of fsdp-run.
//
//===----------------------------------------------------------------------===//

#include "testing/toy/ToyModel.h"
#include <cstdio>
#include <cstdlib>

using namespace fsdprt::test;

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fputs("usage: fsdprt-toy FILE REPLICAS SHARDS\n"
               "         writes a small model with handwritten kernels, for tests of fsdp-run\n",
               argc == 2 ? stdout : stderr);
    return argc == 2 ? 0 : 2;
  }
  ToyOptions options;
  options.replicas = std::strtoull(argv[2], nullptr, 10);
  options.shards = std::strtoull(argv[3], nullptr, 10);
  auto file = pack(toyManifest(options));
  writeFile(argv[1], file.data(), file.size());
}
