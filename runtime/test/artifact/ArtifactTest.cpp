//===- ArtifactTest.cpp - The loader ----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests which files the loader accepts, and with which messages the loader refuses other files. No
// content of a file may crash the process. The tests therefore truncate a file to every length, and
// change every byte of the file. After each change, they try both the old hash and the correct hash
// of the changed file.
//
//===----------------------------------------------------------------------===//

#include "artifact/Artifact.h"
#include "fsdprt/sha256.h"
#include "test/Sanitized.h"
#include "test/artifact/Refusal.h"
#include "test/io/Scratch.h"
#include "testing/toy/ToyModel.h"
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;

/// Returns an artifact with all optional parts, including values and neighbours.
static std::vector<std::byte> packWhole() {
  ToyOptions options;
  options.values = true;
  auto manifest = toyManifest(options);
  // The first gather runs in a group of neighbours. Here, one group contains all ranks of the axis.
  manifest.neighbours.push_back(std::make_unique<fb::NeighboursT>());
  manifest.neighbours[0]->axis = 1;
  manifest.neighbours[0]->size = options.shards;
  for (auto &program : manifest.programs)
    if (program->name == "step")
      program->commands[0]->body.AsCollective()->axes = {2};
  return pack(manifest);
}

/// Returns the distance in bytes between the offsets that are tested. The distance is larger in
/// sanitized builds, because sanitized programs are slow.
static size_t strideOf() {
  if (std::getenv("FSDP_TEST_ALL"))
    return 1;
  return isSanitized ? 13 : 1;
}

TEST(Sha256, KnownAnswers) {
  auto hex = [](const std::string &text) {
    fsdprt_sha256 hash;
    fsdprt_sha256_begin(&hash);
    fsdprt_sha256_update(&hash, text.data(), text.size());
    uint8_t digest[32];
    fsdprt_sha256_end(&hash, digest);
    std::string result;
    for (uint8_t byte : digest)
      result += format("%02x", byte);
    return result;
  };
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// These functions are compiled from the source of fsdprt_sha256_*(), but without SHA-256
// instructions.
extern "C" void portable_sha256_begin(fsdprt_sha256 *hash);
extern "C" void portable_sha256_update(fsdprt_sha256 *hash, const void *data, size_t size);
extern "C" void portable_sha256_end(fsdprt_sha256 *hash, uint8_t digest[32]);

TEST(Sha256, InstructionsAreThePlainWay) {
  std::vector<uint8_t> data(1000);
  uint32_t random = 1;
  for (uint8_t &byte : data)
    byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  for (size_t size = 0; size <= data.size(); ++size) {
    fsdprt_sha256 a, b;
    uint8_t first[32], second[32];
    fsdprt_sha256_begin(&a);
    portable_sha256_begin(&b);
    fsdprt_sha256_update(&a, data.data(), size / 3);
    fsdprt_sha256_update(&a, data.data() + size / 3, size - size / 3);
    portable_sha256_update(&b, data.data(), size);
    fsdprt_sha256_end(&a, first);
    portable_sha256_end(&b, second);
    ASSERT_EQ(std::memcmp(first, second, 32), 0) << size << " bytes";
  }
}

TEST(Artifact, OpensWhatIsWhole) {
  for (uint64_t shards = 1; shards <= 5; ++shards) {
    ToyOptions options;
    options.shards = shards;
    auto file = pack(toyManifest(options));
    auto artifact = Artifact::fromMemory(file.data(), file.size(), "toy.fsdp");
    EXPECT_EQ(artifact->getMesh().ranks(), shards);
    EXPECT_NE(artifact->program("step"), nullptr);
    EXPECT_EQ(artifact->program("no such"), nullptr);
    EXPECT_EQ(artifact->kernel(1).size(), 2u);
  }
}

TEST(Artifact, CutAtEveryLength) {
  auto whole = packWhole();
  for (size_t size = 0; size < whole.size(); size += size < 512 ? 1 : strideOf()) {
    std::vector<std::byte> file(whole.begin(), whole.begin() + size);
    ASSERT_NE(refusal(file), "") << size;
    if (size < sizeof(fsdprt_artifact_header))
      continue;
    uint64_t shorter = size;
    std::memcpy(file.data() + offsetof(fsdprt_artifact_header, file_size), &shorter,
                sizeof shorter);
    ASSERT_NE(refusal(file), "") << size;
    seal(file);
    // The loader may refuse or accept the file, but must return.
    refusal(file);
  }
}

TEST(Artifact, EveryByteChanged) {
  auto whole = packWhole();
  auto file = whole;
  for (size_t at = 0; at < whole.size(); at += at < 128 ? 1 : strideOf()) {
    file[at] ^= std::byte(0xff);
    ASSERT_NE(refusal(file), "") << at;
    file[at] = whole[at];
  }
}

TEST(Artifact, EveryByteChangedUnderANewHash) {
  auto whole = packWhole();
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); at += at < 128 ? 1 : strideOf()) {
    auto file = whole;
    file[at] ^= std::byte(at % 3 == 0 ? 0xff : at % 3 == 1 ? 0x80 : 0x01);
    seal(file);
    refused += !refusal(file).empty();
  }
  // A loader that checks the fields refuses at least one change in 20.
  EXPECT_GT(refused, whole.size() / strideOf() / 20);
}

// Changes files at random offsets, with random lengths and values.
TEST(Artifact, RandomDamageUnderANewHash) {
  auto whole = packWhole();
  std::mt19937_64 random(1);
  const uint64_t words[] = {
      0,  1,   0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, ~uint64_t(0), uint64_t(1) << 63,
      64, 4096};
  int rounds = std::getenv("FSDP_TEST_ALL") ? 200000 : 2000;
  for (int round = 0; round < rounds; ++round) {
    auto file = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      size_t size = size_t(1) << random() % 4, at = 128 + random() % (file.size() - 136);
      uint64_t word = random() % 2 ? random() : words[random() % std::size(words)];
      std::memcpy(file.data() + at / size * size, &word, size);
    }
    seal(file);
    refusal(file);
  }
}

TEST(Artifact, RefusesOtherFiles) {
  EXPECT_NE(refusal(std::vector<std::byte>()).find("found 0 bytes"), std::string::npos);
  std::vector<std::byte> elf(200, std::byte{0});
  std::memcpy(elf.data(), "\177ELF", 4);
  EXPECT_NE(refusal(elf).find("expected an artifact of fsdp-compile"), std::string::npos);
  auto file = pack(toyManifest({}));
  file[8] = std::byte{5};
  EXPECT_NE(refusal(file).find("expected format version 2 to 4, found 5"), std::string::npos);
  EXPECT_THROW(Artifact::open("/no/such/file.fsdp"), Error);
  EXPECT_THROW(Artifact::open("/"), Error);
}

TEST(Artifact, OldVersionsAndValues) {
  auto broken = [](void (*change)(fsdprt_artifact_header &)) {
    auto file = packWhole();
    fsdprt_artifact_header header;
    std::memcpy(&header, file.data(), sizeof header);
    EXPECT_EQ(header.version, 3u);
    change(header);
    std::memcpy(file.data(), &header, sizeof header);
    seal(file);
    return refusal(file);
  };
  EXPECT_EQ(broken([](auto &) {}), "");
  EXPECT_NE(broken([](auto &h) { h.version = 2; }) // format version 2 has no values
                .find("expected format version 3 or later and at least one byte of values, found "
                      "version 2"),
            std::string::npos);
  EXPECT_NE(broken([](auto &h) { h.values_size = 0; }).find("found version 3 and 0 bytes"),
            std::string::npos);
  for (auto change : {+[](fsdprt_artifact_header &h) { h.values_offset -= 4096; },
                      +[](fsdprt_artifact_header &h) { h.values_offset += 64; },
                      +[](fsdprt_artifact_header &h) { h.values_size += 1; },
                      +[](fsdprt_artifact_header &h) { h.values_size = ~uint64_t(0); }})
    EXPECT_NE(broken(change).find("expected the values at byte"), std::string::npos)
        << broken(change);
  EXPECT_NE(
      broken([](auto &h) { h.values_size -= 64; }).find("expected the end of the file at byte"),
      std::string::npos);
}

TEST(Artifact, ValuesLieInTheirSection) {
  auto file = packWhole();
  fsdprt_artifact_header header;
  std::memcpy(&header, file.data(), sizeof header);
  header.values_size -= 64;
  header.file_size -= 64;
  file.resize(header.file_size);
  std::memcpy(file.data(), &header, sizeof header);
  seal(file);
  EXPECT_NE(refusal(file).find("parameter 'b': expected its values"), std::string::npos);
}

// The loader must refuse a file of 8 TiB by its header. An attempt to read the whole file would
// fail because of missing memory, or would take hours.
TEST(Artifact, HeaderIsCheckedBeforeTheRestIsRead) {
  constexpr uint64_t size = uint64_t(1) << 43;
  auto whole = packWhole();
  auto refusalOf = [&](size_t kept, uint64_t fileSize) {
    if (fileSize)
      std::memcpy(whole.data() + offsetof(fsdprt_artifact_header, file_size), &fileSize,
                  sizeof fileSize);
    Scratch file(whole.data(), kept);
    if (truncate(file.path.c_str(), size) != 0)
      return std::string(); // the file system does not support this size
    return refusal([&] { Artifact::open(file.path); });
  };
  Scratch probe("");
  if (truncate(probe.path.c_str(), size) != 0)
    GTEST_SKIP() << "this file system has no files of 8 TiB";
  EXPECT_NE(refusalOf(0, 0).find("which begins with \"FSDPMLIR\""), std::string::npos);
  EXPECT_NE(refusalOf(whole.size(), 0).find("as its header says, found 8796093022208"),
            std::string::npos);
  EXPECT_NE(refusalOf(whole.size(), size).find("expected the end of the file at byte"),
            std::string::npos);
}
