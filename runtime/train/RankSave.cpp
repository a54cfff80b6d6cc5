//===- RankSave.cpp - The file of a rank in a save --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the hash of a rank's file while the chunks of the file are written.
//
//===----------------------------------------------------------------------===//

#include "train/RankSave.h"
#include "fsdprt/sha256.h"
#include "io/OutputFile.h"
#include "io/Safetensors.h"
#include "train/Handles.h"
#include <algorithm>

using namespace fsdprt;

// Number of bytes of a chunk. A chunk must be small enough to stay in the cache while it is hashed
// and then written.
static constexpr size_t chunkBytes = 1 << 20;

namespace {
/// A file that is hashed while it is written.
class HashedFile {
public:
  HashedFile(const std::string &path, const BackgroundTask::Cancelled *cancelled)
      : cancelled(cancelled) {
    file.openNew(path);
    fsdprt_sha256_begin(&hash);
  }
  void write(const void *data, size_t size) {
    const auto *from = static_cast<const std::byte *>(data);
    for (size_t done = 0, part; done < size; done += part) {
      if (cancelled && cancelled->load(std::memory_order_relaxed))
        throw Error(FSDPRT_ABANDONED, "the save was cancelled");
      part = std::min(size - done, chunkBytes);
      fsdprt_sha256_update(&hash, from + done, part);
      file.write(from + done, part);
    }
    bytes += size;
  }
  void finish(SaveIndex::File &about) {
    uint8_t digest[32];
    fsdprt_sha256_end(&hash, digest);
    about.sha256 = hexText(digest);
    about.bytes = bytes;
    file.commit();
  }

private:
  const BackgroundTask::Cancelled *cancelled;
  OutputFile file;
  fsdprt_sha256 hash;
  uint64_t bytes = 0;
};
} // namespace

fsdprt_state_memory fsdprt::memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state) {
  fsdprt_state_memory memory = {};
  memory.struct_size = sizeof memory;
  call(fsdprt_session_get_memory, session, rank, state, &memory);
  return memory;
}

static const void *copyOf(const fsdprt_session *session, uint32_t rank, uint64_t state) {
  fsdprt_state_memory memory = {};
  memory.struct_size = sizeof memory;
  call(fsdprt_session_get_snapshot, session, rank, state, &memory);
  return memory.data;
}

std::map<std::string, uint64_t> fsdprt::statesOf(const SaveIndex &layout, uint64_t rank) {
  std::map<std::string, uint64_t> states;
  for (uint64_t i = 0; i < layout.states.size(); ++i)
    for (uint64_t file : layout.states[i].files)
      if (file == rank)
        states[layout.states[i].tensor] = i;
  return states;
}

RankSave::RankSave(const SaveIndex &layout, uint32_t rank, uint64_t step,
                   const fsdprt_session *session, bool isCopy)
    : session(session), rank(rank) {
  call(fsdprt_session_read_block, session, rank, block.data());
  std::map<std::string, uint64_t> states = statesOf(layout, rank);
  std::vector<TensorEntry> entries = {{saveBlockName, "F32", {FSDPRT_BLOCK_SIZE}}};
  for (const auto &[name, state] : states)
    entries.push_back({name, layout.states[state].dtype, {layout.states[state].elements}});
  header = safetensorsHeader(entries, {{"format", "fsdp-save"},
                                       {"step", std::to_string(step)},
                                       {"rank", std::to_string(rank)},
                                       {"ranks", std::to_string(layout.files.size())}});
  for (const TensorEntry &entry : entries) {
    Piece piece;
    piece.elements = entry.shape[0];
    piece.elementBytes = safetensorsSize(entry.dtype);
    auto state = states.find(entry.name);
    piece.isBlock = state == states.end();
    if (!piece.isBlock) {
      piece.state = state->second;
      piece.data = isCopy ? copyOf(session, rank, piece.state) : nullptr;
    }
    pieces.push_back(piece);
  }
}

/// Copies a state to a file in chunks. The session may keep the state in a file of offloaded
/// states, so the state is not copied from memory at once.
static void writeState(const fsdprt_session *session, uint32_t rank, uint64_t state,
                       uint64_t elements, uint64_t each, HashedFile &file) {
  std::vector<std::byte> piece(std::min(elements * each, uint64_t(chunkBytes)));
  for (uint64_t first = 0; first < elements; first += piece.size() / each) {
    uint64_t count = std::min(piece.size() / each, elements - first);
    call(fsdprt_session_read_state, session, rank, state, first, count,
         static_cast<void *>(piece.data()));
    file.write(piece.data(), count * each);
  }
}

void RankSave::write(const std::string &folder, SaveIndex::File &about,
                     const BackgroundTask::Cancelled *cancelled) const {
  HashedFile file(folder + "/" + about.name, cancelled);
  file.write(header.data(), header.size());
  for (const Piece &piece : pieces)
    if (piece.isBlock)
      file.write(block.data(), sizeof block);
    else if (piece.data)
      file.write(piece.data, piece.elements * piece.elementBytes);
    else
      writeState(session, rank, piece.state, piece.elements, piece.elementBytes, file);
  file.finish(about);
}
