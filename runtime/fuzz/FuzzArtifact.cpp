//===- FuzzArtifact.cpp - Fuzz the reader of artifacts ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the correct file size and hash into the header of the input, so that most inputs reach the
// checks of the manifest. Also dumps each accepted artifact as text.
//
//===----------------------------------------------------------------------===//

#include "artifact/Artifact.h"
#include "artifact/Dump.h"
#include "fsdprt/sha256.h"
#include "fuzz/Fuzzing.h"
#include <cstring>
#include <vector>

using namespace fsdprt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  if (size >= FSDPRT_ARTIFACT_HEADER_SIZE) {
    uint64_t bytes = size;
    std::memcpy(file.data() + offsetof(fsdprt_artifact_header, file_size), &bytes, sizeof bytes);
    fsdprt_sha256_artifact(file.data(), size, file.data() + FSDPRT_ARTIFACT_HASH_OFFSET);
  }
  for (Rules rules : {Rules::all, Rules::form})
    fuzz::tryToRead([&] {
      auto artifact = Artifact::fromMemory(file.data(), size, "fuzz.fsdp", rules);
      uint64_t left = 1 << 20;
      dumpArtifact(*artifact, [&](const std::string &text) {
        left -= std::min<uint64_t>(left, text.size());
        return left > 0;
      });
    });
  return 0;
}
