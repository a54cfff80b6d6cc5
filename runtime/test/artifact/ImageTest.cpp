//===- ImageTest.cpp - The loader of kernel images --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests which images the loader refuses. Also tests that the time and the memory of the loader are
// linear in the size of an image.
//
//===----------------------------------------------------------------------===//

#include "test/artifact/Refusal.h"
#include "testing/toy/ToyModel.h"
#include <cstring>
#include <elf.h>

using namespace fsdprt;
using namespace fsdprt::test;

TEST(Image, RefusesWhatKernelsDoNotNeed) {
  auto manifest = toyManifest({});
  EXPECT_NE(refusal(pack(manifest, readFile(FSDPRT_IMAGE_UNDEFINED)))
                .find("symbol 'missing_function' is undefined"),
            std::string::npos);
  EXPECT_NE(refusal(pack(manifest, readFile(FSDPRT_IMAGE_CONSTRUCTOR)))
                .find("expected no initialiser, found one"),
            std::string::npos);
  EXPECT_NE(refusal(pack(manifest, std::vector<std::byte>(300))).find("no ELF magic"),
            std::string::npos);
}

namespace {
/// An image without code. The dynamic section, the symbols and the names of the image are in a
/// single read-only segment.
struct BareImage {
  std::vector<Elf64_Sym> symbols = {{}};
  std::string names = std::string(1, '\0');
  std::vector<uint32_t> hash; // if empty, build() makes a hash table with one bucket
  std::vector<Elf64_Phdr> segments;

  void addFunction(size_t name) {
    symbols.push_back({});
    symbols.back().st_name = static_cast<uint32_t>(name);
    symbols.back().st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols.back().st_shndx = 1;
  }

  std::vector<std::byte> build(int64_t hashTag = DT_HASH) const {
    std::vector<uint32_t> table = hash;
    if (table.empty())
      table = {1, static_cast<uint32_t>(symbols.size())};
    size_t headers = sizeof(Elf64_Ehdr) + (2 + segments.size()) * sizeof(Elf64_Phdr);
    size_t dynamicBytes = 6 * sizeof(Elf64_Dyn), tableAt = headers + dynamicBytes;
    size_t symbolsAt = tableAt + (table.size() * 4 + 7) / 8 * 8;
    size_t namesAt = symbolsAt + symbols.size() * sizeof(Elf64_Sym);
    std::vector<std::byte> image(namesAt + names.size());
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    std::memcpy(&header.e_machine, toyImage().data() + offsetof(Elf64_Ehdr, e_machine),
                sizeof header.e_machine);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<uint16_t>(2 + segments.size());
    header.e_phoff = sizeof header;
    std::vector<Elf64_Phdr> all(2);
    all[0].p_type = PT_LOAD;
    all[0].p_flags = PF_R;
    all[0].p_filesz = all[0].p_memsz = image.size();
    all[1].p_type = PT_DYNAMIC;
    all[1].p_vaddr = headers;
    all[1].p_memsz = dynamicBytes;
    all.insert(all.end(), segments.begin(), segments.end());
    Elf64_Dyn dynamic[6] = {
        {hashTag, {tableAt}},       {DT_SYMTAB, {symbolsAt}},         {DT_STRTAB, {namesAt}},
        {DT_STRSZ, {names.size()}}, {DT_SYMENT, {sizeof(Elf64_Sym)}}, {DT_NULL, {0}}};
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + sizeof header, all.data(), all.size() * sizeof all[0]);
    std::memcpy(image.data() + headers, dynamic, sizeof dynamic);
    std::memcpy(image.data() + tableAt, table.data(), table.size() * 4);
    std::memcpy(image.data() + symbolsAt, symbols.data(), symbols.size() * sizeof symbols[0]);
    std::memcpy(image.data() + namesAt, names.data(), names.size());
    return image;
  }
};

std::string refusalOf(const std::vector<std::byte> &image) {
  return refusal(pack(toyManifest({}), image));
}
} // namespace

// The loader must not need much time or memory for a small image.
TEST(Image, WorkIsLinear) {
  BareImage image;
  EXPECT_NE(refusalOf(image.build()).find("expected function 'toy_gradient' in the image"),
            std::string::npos);

  // Each of the 1,000 symbol names of the image is almost 1 MB long. The names overlap, because all
  // names end at the same byte.
  image.names += std::string(1'000'000, 'a') + '\0';
  for (size_t i = 0; i < 1000; ++i)
    image.addFunction(1 + i);
  EXPECT_NE(refusalOf(image.build()).find("the names of its first 2 symbols are longer than"),
            std::string::npos);

  // All 12 segments map the same bytes of the file.
  BareImage repeated;
  repeated.names += std::string(8192, 'a') + '\0';
  for (uint64_t i = 1; i <= 12; ++i) {
    Elf64_Phdr segment = {};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R;
    segment.p_vaddr = i << 20;
    segment.p_filesz = segment.p_memsz = 8192;
    repeated.segments.push_back(segment);
  }
  EXPECT_NE(refusalOf(repeated.build()).find("bytes together, found"), std::string::npos);

  // The hash table is longer than the file, and lies in memory that the loader fills with zeros
  // instead of bytes of the file.
  BareImage counted;
  Elf64_Phdr zeros = {};
  zeros.p_type = PT_LOAD;
  zeros.p_flags = PF_R;
  zeros.p_vaddr = 1 << 20;
  zeros.p_memsz = 512 << 20;
  counted.segments = {zeros};
  counted.hash = {1, 4'000'000};
  EXPECT_NE(refusalOf(counted.build()).find("symbols in"), std::string::npos);
  counted.hash = {100'000'000, 1, 0, 0};
  EXPECT_NE(refusalOf(counted.build(DT_GNU_HASH)).find("found 100000000 buckets"),
            std::string::npos);
  counted.hash = {1, 0, (1 << 20) / 8, 0}; // the chain consists of zeros and has no end
  EXPECT_NE(refusalOf(counted.build(DT_GNU_HASH)).find("symbols in"), std::string::npos);
}

// Compiled code does not check addresses. If the loader accepted a manifest with larger extents or
// smaller buffers than those for which the code was compiled, the code could crash the process.
TEST(Image, LaunchesAreThoseOfTheCode) {
  const auto original = toyManifest({});
  std::vector<std::byte> image = imageFor(original);
  EXPECT_EQ(refusal(pack(original, image)), "");
  auto changed = [&](void (*change)(fb::KernelT &)) {
    auto manifest = original;
    change(*manifest.kernels[1]);
    return refusal(pack(manifest, image));
  };
  EXPECT_EQ(changed([](auto &kernel) { kernel.phases[1]->extent = 1 << 20; }),
            "toy.fsdp: kernel 1 ('loss'), phase 1: its code is for extent 8, tile 8, scratch of 64 "
            "and 64 bytes, bindings of 512 512 4 bytes; found extent 1048576, tile 8, scratch of "
            "64 and 64 bytes, bindings of 512 512 4 bytes");
  for (auto change : {+[](fb::KernelT &kernel) { kernel.phases[0]->extent = 7; },
                      +[](fb::KernelT &kernel) { kernel.phases[0]->tile = 2; },
                      +[](fb::KernelT &kernel) { kernel.shared_bytes = 0; },
                      +[](fb::KernelT &kernel) { kernel.worker_bytes = 0; },
                      +[](fb::KernelT &kernel) { kernel.binding_bytes[1] = 448; },
                      +[](fb::KernelT &kernel) { kernel.phases[0]->symbol = "toy_gradient"; }})
    EXPECT_NE(changed(change).find("phase 0: its code is for "), std::string::npos)
        << changed(change);
  EXPECT_NE(refusal(pack(original, toyImage())).find("expected a record of the launch"),
            std::string::npos);
}
