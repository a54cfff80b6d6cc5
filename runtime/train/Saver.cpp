//===- Saver.cpp - Saving a run ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file of a rank holds its step block and its pieces of states. A piece that several ranks have
// is only in the file of the lowest of them. Files are written and hashed on several threads.
//
//===----------------------------------------------------------------------===//

#include "train/Saver.h"
#include "fsdprt/sha256.h"
#include "io/OutputFile.h"
#include "io/Safetensors.h"
#include "train/Handles.h"
#include "train/ParallelFor.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

// A chunk is small enough to stay in the cache while it is hashed and written.
static constexpr size_t chunkBytes = 1 << 20;

//===- Writing ------------------------------------------------------------===//

namespace {
/// A file that is hashed while it is written.
class HashedFile {
public:
  explicit HashedFile(const std::string &path) {
    file.openNew(path);
    fsdprt_sha256_begin(&hash);
  }
  void write(const void *data, size_t size) {
    const auto *from = static_cast<const std::byte *>(data);
    for (size_t done = 0, part; done < size; done += part) {
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

/// Writes a state in chunks, because the state may be in a file instead of in memory.
static void writeState(const fsdprt_session *session, uint32_t rank, uint64_t state, uint64_t each,
                       HashedFile &file) {
  uint64_t elements = memoryOf(session, rank, state).elements;
  std::vector<std::byte> piece(std::min(elements * each, uint64_t(1) << 20));
  for (uint64_t first = 0; first < elements; first += piece.size() / each) {
    uint64_t count = std::min(piece.size() / each, elements - first);
    call(fsdprt_session_read_state, session, rank, state, first, count,
         static_cast<void *>(piece.data()));
    file.write(piece.data(), count * each);
  }
}

std::map<std::string, uint64_t> fsdprt::statesOf(const SaveIndex &layout, uint64_t rank) {
  std::map<std::string, uint64_t> states;
  for (uint64_t i = 0; i < layout.states.size(); ++i)
    for (uint64_t file : layout.states[i].files)
      if (file == rank)
        states[layout.states[i].tensor] = i;
  return states;
}

static void writeRank(const SaveIndex &layout, uint32_t rank, uint64_t step,
                      const std::string &folder, const fsdprt_session *session,
                      SaveIndex::File &about) {
  std::map<std::string, uint64_t> states = statesOf(layout, rank);
  std::vector<TensorEntry> entries = {{saveBlockName, "F32", {FSDPRT_BLOCK_SIZE}}};
  for (const auto &[name, state] : states)
    entries.push_back({name, layout.states[state].dtype, {layout.states[state].elements}});
  std::string header = safetensorsHeader(entries, {{"format", "fsdp-save"},
                                                   {"step", std::to_string(step)},
                                                   {"rank", std::to_string(rank)},
                                                   {"ranks", std::to_string(layout.files.size())}});
  HashedFile file(folder + "/" + about.name);
  file.write(header.data(), header.size());
  for (const TensorEntry &entry : entries) {
    if (auto state = states.find(entry.name); state != states.end()) {
      writeState(session, rank, state->second, safetensorsSize(entry.dtype), file);
      continue;
    }
    float block[FSDPRT_BLOCK_SIZE];
    call(fsdprt_session_read_block, session, rank, static_cast<float *>(block));
    file.write(block, sizeof block);
  }
  file.finish(about);
}

//===- A save, by all processes -------------------------------------------===//

/// What a process reports to the others after each phase of a save.
struct Saver::Word {
  int32_t status = FSDPRT_OK;
  char text[1024] = {};
  char sha256[65] = {}; ///< hash of the file of the process's rank
  uint64_t bytes = 0;
};

void Saver::open(const std::string &newPath, const std::string &resumed, bool fellBack,
                 uint64_t newKeep, const fsdprt_artifact *artifact,
                 std::optional<uint32_t> newRank) {
  path = newPath;
  keep = newKeep;
  rank = newRank;
  layout = describeLayout(artifact);
  if (isRoot())
    folder.open(path, resumed, fellBack);
}

std::vector<Saver::Word> Saver::meet(const Word &mine, fsdprt_session *session) const {
  std::vector<Word> words(rank ? layout.files.size() : 1, mine);
  call(fsdprt_session_exchange, session, static_cast<const void *>(&mine), sizeof mine,
       static_cast<void *>(words.data()));
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].status != FSDPRT_OK)
      throw Error(static_cast<fsdprt_status>(words[i].status),
                  rank ? format("rank %zu: %s", i, words[i].text) : std::string(words[i].text));
  return words;
}

/// Calls part(word) and returns `word` with the error of the call, for meet() to send.
template <typename Word, typename Part>
static Word tried(Part part) {
  Word word;
  try {
    part(word);
  } catch (const Error &error) {
    word.status = error.status;
    std::strncpy(word.text, error.what(), sizeof word.text - 1);
  }
  return word;
}

std::string Saver::begin(uint64_t step, fsdprt_session *session) {
  std::string to;
  Word mine = tried<Word>([&](Word &word) {
    if (!isRoot())
      return;
    to = folder.begin(step);
    if (to.size() >= sizeof word.text)
      failed("%s: its path is too long", to.c_str());
    std::strncpy(word.text, to.c_str(), sizeof word.text - 1);
  });
  return meet(mine, session)[0].text;
}

void Saver::writeRanks(const std::string &to, uint64_t step, SaveIndex &index,
                       fsdprt_session *session) {
  auto write = [&](size_t of) {
    writeRank(layout, static_cast<uint32_t>(of), step, to, session, index.files[of]);
  };
  Word mine = tried<Word>([&](Word &word) {
    if (!rank)
      return onThreads(index.files.size(), write);
    write(*rank);
    std::strncpy(word.sha256, index.files[*rank].sha256.c_str(), sizeof word.sha256 - 1);
    word.bytes = index.files[*rank].bytes;
  });
  std::vector<Word> words = meet(mine, session);
  for (size_t i = 0; rank && i < words.size(); ++i) {
    index.files[i].sha256 = words[i].sha256;
    index.files[i].bytes = words[i].bytes;
  }
}

uint64_t Saver::commit(const std::string &to, SaveIndex &index, fsdprt_session *session) {
  Word mine = tried<Word>([&](Word &word) {
    if (!isRoot())
      return;
    std::string text = writeIndex(index);
    OutputFile file;
    file.openNew(to + "/index.json");
    file.write(text.data(), text.size());
    file.commit();
    folder.commit(index.run.step, index.sha256, keep);
    word.bytes = text.size();
    for (const SaveIndex::File &each : index.files)
      word.bytes += each.bytes;
  });
  return meet(mine, session)[0].bytes;
}

uint64_t Saver::save(const RunState &run, fsdprt_session *session,
                     const std::function<void()> &begun) {
  try {
    SaveIndex index = layout;
    index.run = run;
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session), rank.value_or(0),
         index.block.data());
    std::string to = begin(run.step, session);
    begun();
    writeRanks(to, run.step, index, session);
    return commit(to, index, session);
  } catch (const Error &error) {
    folder.abandon();
    if (error.status == FSDPRT_ABANDONED)
      throw;
    throw Error(error.status == FSDPRT_BAD_INPUT ? FSDPRT_FAILED : error.status,
                format("step %llu could not be saved: %s; earlier saves are untouched",
                       (ull)run.step, error.what()));
  }
}
