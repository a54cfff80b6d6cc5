//===- LaunchRecords.cpp - Launch records of the toy's kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of the toy model support any size. Their launch records therefore depend on the
// manifest. For each phase in a manifest, a record is appended to the object SYMBOL.launch, where
// SYMBOL is the function of the phase. The symbol table of the image contains the position of this
// object.
//
//===----------------------------------------------------------------------===//

#include "fsdprt/launch_record.h"
#include "testing/toy/ToyModel.h"
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <map>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
struct Place {
  uint64_t offset, words;
};

template <typename T>
T read(const std::vector<std::byte> &image, uint64_t offset) {
  T value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

uint64_t offsetOf(const std::vector<std::byte> &image, uint64_t address) {
  auto header = read<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_phnum; ++i) {
    auto segment = read<Elf64_Phdr>(image, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address < segment.p_vaddr + segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  std::abort();
}

std::map<std::string, Place> findObjects(const std::vector<std::byte> &image) {
  std::map<std::string, Place> result;
  auto header = read<Elf64_Ehdr>(image, 0);
  for (int i = 0; i < header.e_shnum; ++i) {
    auto table = read<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (table.sh_type != SHT_DYNSYM)
      continue;
    auto names = read<Elf64_Shdr>(image, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = read<Elf64_Sym>(image, table.sh_offset + at);
      const char *name =
          reinterpret_cast<const char *>(image.data()) + names.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF)
        result[name] = {offsetOf(image, symbol.st_value), symbol.st_size / sizeof(uint64_t)};
    }
  }
  return result;
}
} // namespace

std::vector<std::byte> test::imageFor(const fb::ManifestT &manifest) {
  std::vector<std::byte> image = toyImage();
  std::map<std::string, Place> objects = findObjects(image);
  std::map<std::string, std::vector<uint64_t>> records;
  for (const auto &kernel : manifest.kernels)
    for (const auto &phase : kernel->phases) {
      std::vector<uint64_t> &words = records[phase->symbol];
      words.resize(std::max<size_t>(words.size(), 1));
      ++words[0];
      words.insert(words.end(), {phase->extent, phase->tile, kernel->shared_bytes,
                                 kernel->worker_bytes, kernel->binding_bytes.size()});
      words.insert(words.end(), kernel->binding_bytes.begin(), kernel->binding_bytes.end());
    }
  for (const auto &[symbol, words] : records) {
    auto object = objects.find(symbol + FSDPRT_LAUNCH_SUFFIX);
    // A test of unknown functions names a symbol without an object SYMBOL.launch.
    if (object == objects.end())
      continue;
    if (words.size() > object->second.words)
      std::abort();
    std::memcpy(image.data() + object->second.offset, words.data(), words.size() * 8);
  }
  return image;
}
