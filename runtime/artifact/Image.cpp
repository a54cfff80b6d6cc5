//===- Image.cpp - Compiled kernels in memory -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Check that the headers describe a little-endian ELF64 file of type ET_DYN for this machine.
//  2. Copy the PT_LOAD segments into one anonymous mapping. Segments must not share pages, and no
//     segment may be both writable and executable. The sum of the sizes of the segments must not
//     exceed the size of the image.
//  3. Find the tables of symbols and relocations through PT_DYNAMIC. Refuse initialisers, text
//     relocations, and required libraries other than libc and libm.
//  4. Read the symbols. The number of symbols follows from DT_HASH or DT_GNU_HASH. Refuse undefined
//     symbols that MathFunctions.cpp does not list. Record the name and the address of each data
//     object, and of each function in an executable segment. Names may share bytes, but the sum of
//     the lengths of all names must not exceed the size of the image.
//  5. Apply relocations of type RELATIVE, and relocations that refer to symbols. Refuse relocations
//     of bytes in segments that are not writable.
//  6. Protect each segment according to its flags, and make the RELRO range read-only.
//
// Loading takes time linear in the size of the image. Lazy binding, thread-local storage and RELR
// are not supported.
//
//===----------------------------------------------------------------------===//

#include "artifact/Image.h"
#include "artifact/MathFunctions.h"
#include "core/Error.h"
#include <cstring>
#include <elf.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

#if defined(__x86_64__)
static constexpr int machine = EM_X86_64;
static constexpr uint32_t relative = R_X86_64_RELATIVE, absolute = R_X86_64_64,
                          globalData = R_X86_64_GLOB_DAT, jumpSlot = R_X86_64_JUMP_SLOT;
#elif defined(__aarch64__)
static constexpr int machine = EM_AARCH64;
static constexpr uint32_t relative = R_AARCH64_RELATIVE, absolute = R_AARCH64_ABS64,
                          globalData = R_AARCH64_GLOB_DAT, jumpSlot = R_AARCH64_JUMP_SLOT;
#else
#error "no image loader for this processor"
#endif

static constexpr uint64_t maxSpan = uint64_t(1) << 30;

namespace fsdprt {

class ImageLoader {
public:
  ImageLoader(Image &image, const std::string &file, const std::byte *bytes, size_t size)
      : image(image), file(file), bytes(bytes), size(size), page(sysconf(_SC_PAGESIZE)) {}

  void load() {
    readHeaders();
    map();
    readDynamic();
    readSymbols();
    relocate(rela, relaSize);
    relocate(jumps, jumpsSize);
    protect();
  }

private:
  [[noreturn]] void refuse(const std::string &why) {
    badInput("%s: kernel image: %s", file.c_str(), why.c_str());
  }

  /// Reads a value of type T at offset `offset` of the file. `what` names the value in messages.
  template <typename T>
  T fromFile(uint64_t offset, const char *what) {
    if (offset > size || size - offset < sizeof(T))
      refuse(format("%s at offset %llu is beyond the image's %zu bytes", what,
                    (unsigned long long)offset, size));
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }

  /// Returns the memory at [address, address + length) if a single segment contains this range and
  /// has all of `flags`. Otherwise returns null.
  std::byte *find(uint64_t address, uint64_t length, uint32_t flags = PF_R) {
    for (const Elf64_Phdr &segment : segments)
      if (address >= segment.p_vaddr && length <= segment.p_memsz &&
          address - segment.p_vaddr <= segment.p_memsz - length &&
          (segment.p_flags & flags) == flags)
        return image.base + (address - lowest);
    return nullptr;
  }

  /// Reads a value of type T at `address` in the loaded image. `what` names the value in messages.
  template <typename T>
  T fromMemory(uint64_t address, const char *what) {
    const std::byte *from = find(address, sizeof(T));
    if (!from)
      refuse(format("%s at address 0x%llx lies in no segment", what, (unsigned long long)address));
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  void readHeaders();
  void addSegment(const Elf64_Phdr &header);
  void map();
  void refuseEntry(int64_t tag, uint64_t value);
  void readDynamic();
  uint32_t countSymbols();
  void readSymbols();
  std::string_view stringAt(uint64_t offset);
  uint64_t addressOf(uint32_t symbol);
  void relocate(uint64_t table, uint64_t tableSize);
  void protect();

  Image &image;
  const std::string &file;
  const std::byte *bytes;
  size_t size;
  uint64_t page;
  std::vector<Elf64_Phdr> segments;
  Elf64_Phdr dynamic = {}, relro = {};
  uint64_t lowest = 0, segmentBytes = 0;
  uint64_t strings = 0, stringsSize = 0, symbols = 0, hash = 0, gnuHash = 0;
  uint64_t rela = 0, relaSize = 0, jumps = 0, jumpsSize = 0;
  std::vector<uint64_t> addresses; ///< address of each symbol; 0 if undefined
  std::vector<uint64_t> needed;
};

} // namespace fsdprt

void ImageLoader::readHeaders() {
  auto header = fromFile<Elf64_Ehdr>(0, "the ELF header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    refuse("expected an ELF file, found no ELF magic");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_DYN)
    refuse("expected a 64-bit little-endian shared object");
  if (header.e_machine != machine)
    refuse(format("expected code for ELF machine %d (this processor), found %d", machine,
                  header.e_machine));
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > 64)
    refuse(format("expected 1 to 64 program headers of %zu bytes, found %d of %d",
                  sizeof(Elf64_Phdr), header.e_phnum, header.e_phentsize));
  if (header.e_phoff > size)
    refuse("the program headers are beyond the end of the image");
  for (int i = 0; i < header.e_phnum; ++i) {
    auto entry = fromFile<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "a program header");
    if (entry.p_type == PT_LOAD && entry.p_memsz != 0)
      addSegment(entry);
    else if (entry.p_type == PT_DYNAMIC)
      dynamic = entry;
    else if (entry.p_type == PT_GNU_RELRO)
      relro = entry;
    else if (entry.p_type == PT_TLS || entry.p_type == PT_INTERP)
      refuse("expected neither thread-local storage nor an interpreter");
  }
  if (segments.empty() || dynamic.p_memsz == 0)
    refuse("expected segments to load and a dynamic section");
}

void ImageLoader::addSegment(const Elf64_Phdr &header) {
  if (header.p_filesz > header.p_memsz || header.p_offset > size ||
      header.p_filesz > size - header.p_offset)
    refuse(format("a segment's bytes [%llu, +%llu) are not within the image's %zu",
                  (unsigned long long)header.p_offset, (unsigned long long)header.p_filesz, size));
  segmentBytes += header.p_filesz;
  if (segmentBytes > size)
    refuse(format("expected segments that have at most the image's %zu bytes together, found %llu",
                  size, (unsigned long long)segmentBytes));
  if (header.p_vaddr > maxSpan || header.p_memsz > maxSpan)
    refuse("a segment is larger than 1 GiB");
  if ((header.p_flags & PF_W) && (header.p_flags & PF_X))
    refuse("a segment is both writable and executable");
  if (!segments.empty()) {
    const Elf64_Phdr &last = segments.back();
    uint64_t end = (last.p_vaddr + last.p_memsz + page - 1) / page * page;
    if (header.p_vaddr / page * page < end)
      refuse("expected segments in ascending order on separate pages");
  }
  segments.push_back(header);
}

void ImageLoader::map() {
  lowest = segments.front().p_vaddr / page * page;
  uint64_t end = segments.back().p_vaddr + segments.back().p_memsz;
  image.span = (end - lowest + page - 1) / page * page;
  void *memory =
      mmap(nullptr, image.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    failed("%s: kernel image: cannot map %s: %s", file.c_str(), bytesText(image.span).c_str(),
           strerror(errno));
  image.base = static_cast<std::byte *>(memory);
  for (const Elf64_Phdr &segment : segments)
    std::memcpy(image.base + (segment.p_vaddr - lowest), bytes + segment.p_offset,
                segment.p_filesz);
}

/// Refuses an entry of the dynamic section that requires an initialiser, text relocations, or
/// relocations in a format other than RELA.
void ImageLoader::refuseEntry(int64_t tag, uint64_t value) {
  switch (tag) {
  case DT_INIT:
  case DT_FINI:
    refuse("expected no initialiser, found one");
  case DT_INIT_ARRAYSZ:
  case DT_FINI_ARRAYSZ:
  case DT_PREINIT_ARRAYSZ:
    if (value != 0)
      refuse("expected no initialiser, found one");
    break;
  case DT_TEXTREL:
    refuse("expected no relocations of code, found some");
  case DT_FLAGS:
    if (value & DF_TEXTREL)
      refuse("expected no relocations of code, found some");
    break;
  case DT_REL:
  case 36 /* DT_RELR */:
    refuse("expected relocations of the form RELA");
  default:
    break;
  }
}

void ImageLoader::readDynamic() {
  uint64_t relaEntry = sizeof(Elf64_Rela), symbolEntry = sizeof(Elf64_Sym), jumpsKind = DT_RELA;
  const std::pair<int64_t, uint64_t *> kept[] = {
      {DT_STRTAB, &strings},     {DT_STRSZ, &stringsSize},  {DT_SYMTAB, &symbols},
      {DT_SYMENT, &symbolEntry}, {DT_HASH, &hash},          {DT_GNU_HASH, &gnuHash},
      {DT_RELA, &rela},          {DT_RELASZ, &relaSize},    {DT_RELAENT, &relaEntry},
      {DT_JMPREL, &jumps},       {DT_PLTRELSZ, &jumpsSize}, {DT_PLTREL, &jumpsKind}};
  for (uint64_t at = 0;; at += sizeof(Elf64_Dyn)) {
    if (at + sizeof(Elf64_Dyn) > dynamic.p_memsz)
      refuse("the dynamic section has no end marker");
    auto entry = fromMemory<Elf64_Dyn>(dynamic.p_vaddr + at, "the dynamic section");
    if (entry.d_tag == DT_NULL)
      break;
    for (auto [tag, place] : kept)
      if (entry.d_tag == tag)
        *place = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED)
      needed.push_back(entry.d_un.d_val);
    refuseEntry(entry.d_tag, entry.d_un.d_val);
  }
  if (relaEntry != sizeof(Elf64_Rela) || symbolEntry != sizeof(Elf64_Sym) || jumpsKind != DT_RELA)
    refuse("expected relocations and symbols of the 64-bit form");
  if (!symbols || !strings || !stringsSize)
    refuse("expected a table of symbols");
  if (!find(strings, stringsSize) ||
      fromMemory<char>(strings + stringsSize - 1, "the names of symbols") != '\0')
    refuse("the names of symbols do not lie in one segment or are not terminated");
  for (uint64_t name : needed)
    if (std::string_view library = stringAt(name); library != "libm.so.6" && library != "libc.so.6")
      refuse("needs the library '" + printable(std::string(library)) +
             "'; expected libm.so.6 or libc.so.6");
}

std::string_view ImageLoader::stringAt(uint64_t offset) {
  if (offset >= stringsSize)
    refuse("a name is beyond the end of the table of names");
  return reinterpret_cast<const char *>(find(strings, stringsSize)) + offset;
}

/// Reads the number of symbols from the hash table. Refuses an image that is too small to contain
/// that many symbols.
uint32_t ImageLoader::countSymbols() {
  uint64_t most = size / sizeof(Elf64_Sym);
  auto checked = [&](uint64_t count) {
    if (count > most)
      refuse(format("expected at most %llu symbols in %zu bytes, found %llu",
                    (unsigned long long)most, size, (unsigned long long)count));
    return static_cast<uint32_t>(count);
  };
  if (hash)
    return checked(fromMemory<uint32_t>(hash + 4, "the hash table"));
  if (!gnuHash)
    refuse("expected a hash table of symbols");
  struct {
    uint32_t buckets, first, bloom, shift;
  } header = fromMemory<decltype(header)>(gnuHash, "the hash table");
  if (header.buckets > size / sizeof(uint32_t))
    refuse(
        format("expected a hash table within %zu bytes, found %u buckets", size, header.buckets));
  uint64_t buckets = gnuHash + sizeof header + uint64_t(header.bloom) * 8;
  uint64_t chains = buckets + uint64_t(header.buckets) * 4;
  uint64_t last = 0;
  for (uint32_t i = 0; i < header.buckets; ++i)
    last =
        std::max<uint64_t>(last, fromMemory<uint32_t>(buckets + uint64_t(i) * 4, "the hash table"));
  if (last < header.first)
    return checked(header.first);
  while (checked(last + 1) &&
         !(fromMemory<uint32_t>(chains + (last - header.first) * 4, "the hash table") & 1))
    ++last;
  return checked(last + 1);
}

void ImageLoader::readSymbols() {
  uint32_t count = countSymbols();
  if (!find(symbols, uint64_t(count) * sizeof(Elf64_Sym)))
    refuse(format("%u symbols do not lie in a segment", count));
  addresses.assign(count, 0);
  uint64_t nameBytes = 0;
  for (uint32_t i = 1; i < count; ++i) {
    auto symbol = fromMemory<Elf64_Sym>(symbols + uint64_t(i) * sizeof(Elf64_Sym), "a symbol");
    std::string_view name = stringAt(symbol.st_name);
    nameBytes += name.size();
    if (nameBytes > size)
      refuse(format("the names of its first %u symbols are longer than the image's %zu bytes", i,
                    size));
    uint32_t type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF) {
      const void *function = findMathFunction(name);
      if (!function && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
        refuse("symbol '" + printable(std::string(name)) + "' is undefined");
      addresses[i] = reinterpret_cast<uint64_t>(function);
    } else if (type != STT_TLS && type != STT_GNU_IFUNC && find(symbol.st_value, 0)) {
      addresses[i] = reinterpret_cast<uint64_t>(image.base) - lowest + symbol.st_value;
    }
    if (type == STT_FUNC && find(symbol.st_value, 1, PF_X))
      image.functions.emplace(name, symbol.st_value - lowest);
    else if (type == STT_OBJECT && find(symbol.st_value, symbol.st_size))
      image.objects.emplace(name, Image::Object{symbol.st_value - lowest, symbol.st_size});
  }
}

/// Returns the address of symbol `index` in this process. Refuses a symbol that has no address.
uint64_t ImageLoader::addressOf(uint32_t index) {
  if (index == 0 || index >= addresses.size())
    refuse(format("a relocation names symbol %u of %zu", index, addresses.size()));
  if (addresses[index] == 0)
    refuse(format("a relocation names symbol %u, which has no address", index));
  return addresses[index];
}

void ImageLoader::relocate(uint64_t table, uint64_t tableSize) {
  if (tableSize == 0)
    return;
  if (tableSize % sizeof(Elf64_Rela) != 0 || !find(table, tableSize))
    refuse("the relocations do not lie in a segment");
  uint64_t bias = reinterpret_cast<uint64_t>(image.base) - lowest;
  for (uint64_t at = table; at != table + tableSize; at += sizeof(Elf64_Rela)) {
    auto entry = fromMemory<Elf64_Rela>(at, "a relocation");
    std::byte *target = find(entry.r_offset, 8, PF_W);
    if (!target)
      refuse(format("a relocation at address 0x%llx is not in a writable segment",
                    (unsigned long long)entry.r_offset));
    uint32_t type = ELF64_R_TYPE(entry.r_info);
    uint64_t value = entry.r_addend;
    if (type == absolute || type == globalData || type == jumpSlot)
      value += addressOf(ELF64_R_SYM(entry.r_info));
    else if (type == relative)
      value += bias;
    else
      refuse(format("relocation of type %u is not supported", type));
    std::memcpy(target, &value, sizeof value);
  }
}

void ImageLoader::protect() {
  if (mprotect(image.base, image.span, PROT_NONE) != 0)
    failed("%s: kernel image: cannot protect memory: %s", file.c_str(), strerror(errno));
  for (const Elf64_Phdr &segment : segments) {
    uint64_t begin = (segment.p_vaddr - lowest) / page * page;
    uint64_t end = (segment.p_vaddr - lowest + segment.p_memsz + page - 1) / page * page;
    int flags = (segment.p_flags & PF_R ? PROT_READ : 0) |
                (segment.p_flags & PF_W ? PROT_WRITE : 0) |
                (segment.p_flags & PF_X ? PROT_READ | PROT_EXEC : 0);
    if (mprotect(image.base + begin, end - begin, flags) != 0)
      failed("%s: kernel image: cannot protect memory: %s", file.c_str(), strerror(errno));
  }
  if (relro.p_memsz && find(relro.p_vaddr, relro.p_memsz)) {
    uint64_t begin = (relro.p_vaddr - lowest + page - 1) / page * page;
    uint64_t end = (relro.p_vaddr - lowest + relro.p_memsz) / page * page;
    if (begin < end && mprotect(image.base + begin, end - begin, PROT_READ) != 0)
      failed("%s: kernel image: cannot protect memory: %s", file.c_str(), strerror(errno));
  }
}

Image::Image(const std::string &file, const std::byte *bytes, size_t size) {
  try {
    ImageLoader(*this, file, bytes, size).load();
  } catch (...) {
    if (base)
      munmap(base, span);
    throw;
  }
}

Image::~Image() {
  if (base)
    munmap(base, span);
}

const void *Image::function(const std::string &name) const {
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : base + found->second;
}

Image::Words Image::words(const std::string &name) const {
  auto found = objects.find(name);
  if (found == objects.end() || found->second.offset % sizeof(uint64_t) != 0)
    return {};
  return {reinterpret_cast<const uint64_t *>(base + found->second.offset),
          found->second.bytes / sizeof(uint64_t)};
}
