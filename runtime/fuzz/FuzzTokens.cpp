//===- FuzzTokens.cpp - Fuzz readers of tokens and samples ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first byte of the input selects the type, limit and shape. The other bytes are the content of
// the token file.
//
//===----------------------------------------------------------------------===//

#include "fuzz/Fuzzing.h"
#include "io/SampleFile.h"
#include "io/TokenFile.h"
#include <vector>

using namespace fsdprt;

static void readTokens(const std::string &path, uint8_t choice) {
  constexpr uint64_t limits[] = {0, 7, 256, 50257};
  TokenFile tokens(path, static_cast<TokenType>(choice % 4), limits[choice / 4 % 4]);
  std::vector<uint32_t> ids(std::min<uint64_t>(tokens.size(), 64));
  tokens.read(tokens.size() - ids.size(), ids.size(), ids.data());
  tokens.sha256();
  tokens.expectUnchanged();
}

static void readSamples(const std::string &path, uint8_t choice) {
  constexpr fsdprt_dtype types[] = {FSDPRT_F32, FSDPRT_F16, FSDPRT_I64, FSDPRT_I8};
  fsdprt_input_info info = {};
  info.struct_size = sizeof info;
  info.name = "x";
  info.dtype = types[choice % 4];
  info.limit = choice & 16 ? 5 : 0;
  std::vector<uint64_t> row;
  if (choice & 32)
    row = {2, 2};
  SampleFile samples(path, info, row);
  std::vector<std::byte> bytes(8 * 4);
  if (samples.getRows())
    samples.copyRow(samples.getRows() - 1, bytes.data());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  static fuzz::MemoryFile file;
  file.write(data + 1, size - 1);
  fuzz::tryToRead([&] { readTokens(file.getPath(), data[0]); });
  fuzz::tryToRead([&] { readSamples(file.getPath(), data[0]); });
  return 0;
}
