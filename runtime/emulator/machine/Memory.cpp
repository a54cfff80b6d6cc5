//===- Memory.cpp - Memory with a shadow ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A page of the shadow is allocated when one of its cells is first accessed.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Memory.h"

using namespace fsdprt::emulate;

Cell &Shadow::cell(uint64_t index) {
  uint64_t page = index / pageCells;
  if (page >= pages.size())
    pages.resize(page + 1);
  if (!pages[page])
    pages[page] = std::make_unique<Cell[]>(pageCells);
  return pages[page][index % pageCells];
}

void Shadow::split(Cell &cell) {
  if (cell.parts)
    return;
  Cell each = cell;
  each.moreReads = each.weakWrite = 0;
  if (freeParts.empty())
    freeParts.push_back(parts.emplace_back().data());
  Cell *four = freeParts.back();
  freeParts.pop_back();
  for (unsigned k = 0; k < 4; ++k) {
    four[k] = each;
    for (uint32_t at = cell.moreReads; at; at = chains[at].next)
      four[k].moreReads = chain(Cell::Access(chains[at].access), four[k].moreReads);
    if (cell.weakWrite)
      four[k].weakWrite = chain(Cell::Access(chains[cell.weakWrite].access), 0);
  }
  dropReads(cell);
  dropWeakWrite(cell);
  cell.parts = four;
}

void Shadow::join(Cell &cell) {
  freeParts.push_back(cell.parts);
  cell = cell.parts[0];
}

uint32_t Shadow::chain(const Cell::Access &access, uint32_t next) {
  uint32_t index = freeChain;
  if (index)
    freeChain = chains[index].next;
  else
    index = chains.size(), chains.emplace_back();
  chains[index] = {access, next};
  return index;
}

void Shadow::drop(uint32_t &first) {
  while (uint32_t index = first) {
    first = chains[index].next;
    chains[index].next = freeChain;
    freeChain = index;
  }
}

void Shadow::dropReads(Cell &cell) {
  cell.read.group = 0;
  drop(cell.moreReads);
}

void Shadow::keepWeakWrite(Cell &cell) {
  if (!cell.write.group || cell.write.isStrong)
    return;
  dropWeakWrite(cell);
  cell.weakWrite = chain(cell.write, 0);
}

void Shadow::clear() {
  pages.clear();
  chains.resize(1);
  freeChain = 0;
  parts.clear();
  freeParts.clear();
}

void Storage::resize(uint64_t count) {
  size = count;
  own.assign(count, 0);
  written.assign(count, 0);
  bytes = own.data();
}

Storage &Memory::allocate(std::string name, uint64_t size, uint64_t alignment) {
  nextBase = (nextBase + alignment - 1) / alignment * alignment;
  auto storage = std::make_unique<Storage>();
  storage->name = std::move(name);
  storage->base = nextBase;
  storage->resize(size);
  nextBase += (size + 4095) / 4096 * 4096 + 4096;
  Storage &result = *storage;
  storages[result.base] = std::move(storage);
  return result;
}

Storage &Memory::attach(std::string name, void *bytes, uint64_t size) {
  Storage &storage = allocate(std::move(name), 0);
  nextBase += (size + 4095) / 4096 * 4096;
  storage.size = size;
  storage.bytes = static_cast<uint8_t *>(bytes);
  storage.written.assign(size, 1);
  return storage;
}

Storage &Memory::attachInPlace(std::string name, void *bytes, uint64_t size) {
  auto storage = std::make_unique<Storage>();
  storage->name = std::move(name);
  storage->base = reinterpret_cast<uint64_t>(bytes);
  storage->size = size;
  storage->bytes = static_cast<uint8_t *>(bytes);
  storage->written.assign(size, 1);
  return *(storages[storage->base] = std::move(storage));
}

void Memory::release(Storage &storage) {
  last = nullptr;
  storages.erase(storage.base);
}

Storage *Memory::find(uint64_t address) {
  if (last && address - last->base < last->size)
    return last;
  auto above = storages.upper_bound(address);
  if (above == storages.begin())
    return nullptr;
  Storage *storage = std::prev(above)->second.get();
  if (address - storage->base >= storage->size)
    return nullptr;
  return last = storage;
}

const Storage *Memory::nearest(uint64_t address) const {
  auto above = storages.upper_bound(address);
  const Storage *before = above == storages.begin() ? nullptr : std::prev(above)->second.get();
  const Storage *after = above == storages.end() ? nullptr : above->second.get();
  if (!before || !after)
    return before ? before : after;
  return address - (before->base + before->size) <= after->base - address ? before : after;
}
